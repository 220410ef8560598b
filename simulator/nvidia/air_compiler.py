"""Compiles modules of AIR to PTX; results are cached."""

from __future__ import annotations

import functools
import json
import tempfile
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from ...cache import fingerprint, fingerprint_of_code
from ...errors import one_line
from ...metal_limits import MAX_THREADS_PER_THREADGROUP
from ..air.bitcode import signature_of_bitcode
from ..clang import BuildCache, InternalCompilerError
from ..errors import MalformedKernelError
from ..metal.compiler import INCLUDE as METAL_INCLUDE
from .air_module import gpu_module
from .compiler import INCLUDE, PtxCompiler
from .program import WAITS

_RUNTIME = Path(__file__).parent / "runtime"
_HOST_MATHEMATICS = Path(__file__).parent.parent / "air" / "runtime" / "mathematics.cpp"
# In link order: each may call functions of those after it.
_SOURCES = (
    *(_RUNTIME / name for name in ("lanes.cpp", "positions.cpp", "matrices.cpp")),
    _HOST_MATHEMATICS,
    _RUNTIME / "mathematics.cpp",
)
_DECIDING_CODE = (
    *(f"simulator.nvidia.{name}" for name in ("air_atomics", "air_compiler", "air_module", "compiler", "include")),
    *("simulator.nvidia.entry_point", "simulator.nvidia.runtime", "simulator.air", "simulator.metal.include"),
)
_RUNTIME_FLAGS = (
    *("-x", "c++", "-std=c++17", "-O2", "-nostdinc", "-ffreestanding", "-nogpulib", "-fno-exceptions", "-fno-rtti"),
    *("-fconvergent-functions", "-fno-math-errno", "-ffp-contract=off", "-fno-strict-aliasing", "-Wno-everything"),
)


@dataclass(frozen=True)
class AirCode:
    """The PTX of a shipped kernel.

    Attributes:
        name: the name of the kernel.
        ptx: the PTX.
        slots: the buffer index of each parameter, in their order.
        threadgroup_slots: the indices of threadgroup arguments, in the order of parameters.
        waits: whether the kernel depends on the size of a threadgroup.
        max_threads: the largest threadgroup.
    """

    name: str
    ptx: str
    slots: tuple[int, ...]
    threadgroup_slots: tuple[int, ...]
    waits: bool
    max_threads: int


class AirPtxCompiler:
    """Compiles shipped kernels to PTX."""

    def __init__(self, compiler: PtxCompiler, cache: BuildCache) -> None:
        self._compiler = compiler
        self._cache = cache
        self._identity = fingerprint(compiler.identity, compiler.architecture, fingerprint_of_code(*_DECIDING_CODE))

    def code(self, bitcode: bytes, name: str) -> AirCode:
        """A kernel's PTX.

        Raises:
            MalformedKernelError: the module is not a kernel.
            UnsupportedKernelError: it uses an operation that is not implemented for the GPU.
            PtxError: the compiler refuses it.
        """
        key = fingerprint(self._identity, bitcode)
        cached = self._cache.find(key, ".json")
        if cached:
            content = json.loads(cached[1])
            slots = {field: tuple(content[field]) for field in ("slots", "threadgroup_slots")}
            return AirCode(**{**content, **slots})
        signature = signature_of_bitcode(bitcode, name)
        module = gpu_module(self._disassembled(bitcode), name, signature)
        ptx = self._compiler.from_assembly(module, self._runtime)
        by_position = [a for a in signature.arguments if a in (*signature.buffers, *signature.threadgroup_buffers)]
        code = AirCode(
            name=name,
            ptx=ptx,
            slots=tuple(a.index for a in by_position if not a.is_threadgroup),
            threadgroup_slots=tuple(a.index for a in by_position if a.is_threadgroup),
            waits=WAITS.search(ptx) is not None,
            max_threads=signature.max_threads or MAX_THREADS_PER_THREADGROUP,
        )
        self._cache.store(key, ".json", json.dumps(asdict(code)).encode())
        return code

    def _disassembled(self, bitcode: bytes) -> str:
        with tempfile.TemporaryDirectory(prefix="mpsmith-nvidia-") as folder:
            module = Path(folder) / "kernel.bc"
            module.write_bytes(bitcode)
            done = self._compiler.clang.run(
                *("clang", "-cc1", *self._compiler.cc1_target, "-disable-llvm-passes", "-emit-llvm"),
                *("-Wno-override-module", "-x", "ir", str(module), "-o", "-"),
                limits=self._compiler.limits,
            )
        if not done.succeeded:
            raise MalformedKernelError(f"LLVM cannot read its module: {one_line(ValueError(done.stderr), 300)}")
        return done.stdout

    @functools.cached_property
    def _runtime(self) -> Sequence[Path]:
        return [self._runtime_unit(source) for source in _SOURCES]

    def _runtime_unit(self, source: Path) -> Path:
        key = fingerprint(self._identity, "runtime", str(source.relative_to(source.parents[2])))
        cached = self._cache.find(key, ".bc")
        if cached:
            return cached[0]
        with tempfile.TemporaryDirectory(prefix="mpsmith-nvidia-") as folder:
            unit = Path(folder) / "unit.bc"
            done = self._compiler.clang.run(
                *("clang", "--target=nvptx64-nvidia-cuda", f"-march={self._compiler.architecture}", *_RUNTIME_FLAGS),
                *("-isystem", str(self._compiler.clang.headers / "include")),
                *("-I", str(INCLUDE), "-I", str(METAL_INCLUDE), "-emit-llvm", "-c", str(source), "-o", str(unit)),
            )
            if not done.succeeded:
                raise InternalCompilerError(f"the simulator's own {source.name} does not compile: {done.stderr}")
            return self._cache.store(key, ".bc", unit.read_bytes())
