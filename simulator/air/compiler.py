"""Compiles modules of AIR for this machine's processor with the clang of the ziglang wheel."""

from __future__ import annotations

import functools
import platform
import tempfile
from pathlib import Path

from ...cache import cache_folder
from ...errors import one_line
from ...fingerprint import fingerprint, fingerprint_of_code
from ..clang import BuildCache, Clang, InternalCompilerError
from ..metal.compiler import MetalCompiler, default_compiler
from .bitcode import signature_of_bitcode
from .errors import KernelCompileError, MalformedKernelError
from .host_module import host_module

_RUNTIME = Path(__file__).parent / "runtime"
# What decides what a module becomes: a change of any of it voids what was built.
_DECIDING_CODE = (
    *(f"simulator.air.{name}" for name in ("bitcode", "bitstream", "compiler", "entry_point", "host_module")),
    *(f"simulator.air.{name}" for name in ("intrinsics", "llvm_text", "metadata", "runtime", "signature")),
    "simulator.clang",
)
_CACHE_DAYS = 90
_CC1_TARGETS = {
    # v3 as for Metal source (simulator/metal/compiler.py): it has the half conversions and fused multiply-add.
    "x86_64": ("-triple", "x86_64-unknown-linux-gnu", "-target-cpu", "x86-64-v3"),
    "aarch64": ("-triple", "aarch64-unknown-linux-gnu", "-target-cpu", "generic"),
}
_READ_IR = ("-Wno-override-module", "-x", "ir")


class AirCompiler:
    """Compiles kernels for the host; what it built is kept in `cache`."""

    def __init__(self, clang: Clang, cache: BuildCache, scheduler: MetalCompiler) -> None:
        self._clang = clang
        self.cache = cache
        self.scheduler = scheduler
        self.identity = fingerprint(clang.identity, fingerprint_of_code(*_DECIDING_CODE))
        self._target = _CC1_TARGETS[platform.machine()]

    def disassemble(self, bitcode: bytes) -> str:
        """A module as assembly, its triple and data layout replaced by those of the host.

        Raises:
            MalformedKernelError: it is no bitcode.
        """
        with tempfile.TemporaryDirectory(prefix="mpsmith-air-") as folder:
            module = Path(folder) / "kernel.bc"
            module.write_bytes(bitcode)
            done = self._clang.run(
                *("clang", "-cc1", *self._target, "-disable-llvm-passes", "-emit-llvm", *_READ_IR, str(module)),
                *("-o", "-"),
            )
        if not done.succeeded:
            raise MalformedKernelError(f"LLVM cannot read its module: {one_line(ValueError(done.stderr), 300)}")
        return done.stdout

    def build(self, bitcode: bytes, name: str) -> bytes:
        """A shared library with the kernel, from the cache where it was built before.

        Raises:
            MalformedKernelError: the module is no kernel's.
            UnsupportedKernelError: it needs an operation that the host has no code for.
            KernelCompileError: the compiler refuses it.
        """
        return self.built(bitcode, name)[1]

    def built(self, bitcode: bytes, name: str) -> tuple[Path, bytes]:
        """The file of `build` and its content."""
        key = fingerprint(self.identity, "kernel", bitcode)
        kept = self.cache.find(key, ".so")
        if kept is None:
            content = self._build(bitcode, name)
            kept = self.cache.store(key, ".so", content), content
        return kept

    def _build(self, bitcode: bytes, name: str) -> bytes:
        assembly = self.disassemble(bitcode)
        text = host_module(assembly, name, signature_of_bitcode(bitcode, name))
        with tempfile.TemporaryDirectory(prefix="mpsmith-air-") as folder:
            source, unit, library = (Path(folder) / file for file in ("host.ll", "kernel.o", "kernel.so"))
            source.write_text(text, encoding="utf-8")
            done = self._clang.run(
                *("clang", "-cc1", *self._target, "-mrelocation-model", "pic", "-pic-level", "2", "-O2"),
                *("-vectorize-loops", "-vectorize-slp", "-ffp-contract=on", "-emit-obj"),
                *(word for file in self.runtime for word in ("-mlink-builtin-bitcode", str(file))),
                *(*_READ_IR, str(source), "-o", str(unit)),
            )
            if not done.succeeded:
                raise KernelCompileError(f"the compiler refuses it: {one_line(ValueError(done.stderr), 300)}")
            # The symbols that are missing here (the scheduler's and libm's) are found when the library is loaded.
            done = self._clang.run("ld.lld", "-shared", "-z", "nostart-stop-gc", str(unit), "-o", str(library))
            if not done.succeeded:
                raise InternalCompilerError(f"the linker failed: {done.stderr.strip()}")
            return library.read_bytes()

    @functools.cached_property
    def runtime(self) -> tuple[Path, ...]:
        """The host's side of AIR's operations as bitcode, a file for each source."""
        return tuple(self._runtime_unit(source) for source in sorted(_RUNTIME.glob("*.cpp")))

    def _runtime_unit(self, source: Path) -> Path:
        key = fingerprint(self.identity, "runtime", source.name)
        kept = self.cache.find(key, ".bc")
        if kept:
            return kept[0]
        self.cache.discard_old(_CACHE_DAYS)
        machine = platform.machine()
        level = ("-march=x86-64-v3",) if machine == "x86_64" else ()
        with tempfile.TemporaryDirectory(prefix="mpsmith-air-") as folder:
            unit = Path(folder) / "unit.bc"
            done = self._clang.run(
                *("clang", f"--target={machine}-linux-gnu", *level, "-x", "c++", "-std=c++17", "-O2", "-fPIC"),
                *("-nostdinc", "-isystem", str(self._clang.headers / "include"), "-ffreestanding", "-fno-exceptions"),
                *("-fno-rtti", "-fno-math-errno", "-ffp-contract=off", "-fno-strict-aliasing", "-Wno-everything"),
                *("-Xclang", "-ffloat16-excess-precision=none", "-Xclang", "-fbfloat16-excess-precision=none"),
                *("-emit-llvm", "-c", str(source), "-o", str(unit)),
            )
            if not done.succeeded:
                raise InternalCompilerError(f"the simulator's own {source.name} does not compile: {done.stderr}")
            return self.cache.store(key, ".bc", unit.read_bytes())


@functools.cache
def default_air_compiler() -> AirCompiler:
    """The installed compiler with the user's cache.

    Raises:
        CompilerMissingError: ziglang is not installed, or this machine is not Linux on x86-64 or aarch64.
    """
    scheduler = default_compiler()
    return AirCompiler(scheduler.clang, BuildCache(cache_folder() / "air"), scheduler)
