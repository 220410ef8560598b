"""Compiles modules of AIR for this machine's processor with the clang of the ziglang wheel."""

from __future__ import annotations

import copy
import functools
import platform
import re
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Literal

from ...cache import cache_folder, fingerprint, fingerprint_of_code
from ...errors import one_line
from ..clang import BuildCache, Clang, CompilerLimitError, CompilerStream, InternalCompilerError, Limits, ToolRun
from ..errors import KernelCacheError, KernelCompileError, MalformedKernelError
from ..metal.compiler import MetalCompiler, default_compiler
from ..metal.function_constants import Constant
from .bitcode import signature_of_bitcode
from .function_constants import with_constants
from .host_module import host_module
from .intrinsics import Perturbation, Variant

_RUNTIME = Path(__file__).parent / "runtime"
_RUNTIME_FUNCTION = re.compile(r"@(airrt_\w+)")
# The code that determines the result of a build: the cache key changes with it.
_DECIDING_CODE = (
    *(f"simulator.air.{name}" for name in ("bitcode", "bitstream", "compiler", "entry_point", "function_constants")),
    "simulator.air.host_module",
    *(f"simulator.air.{name}" for name in ("intrinsics", "llvm_text", "metadata", "runtime", "signature")),
    "simulator.clang",
)
CACHE_BYTES = 1 << 30
"""The limit of compiled kernels on disk; those of a release take some 150 MB."""
_CACHE_DAYS = 90
# Measuring the size of the cache takes as long as a build, so only one build in this many does it, chosen by its key.
# Each build adds some 8 kB.
_BUILDS_PER_CHECK = 256

# Bitcode is not trusted. Optimized, shipped kernels take up to 3 s and 200 MB.
_LIMITS = Limits(seconds=120, memory=4 << 30)

_CC1_TARGETS = {
    # v3 as for Metal source (simulator/metal/compiler.py): it has the half conversions and fused multiply-add.
    "x86_64": ("-triple", "x86_64-unknown-linux-gnu", "-target-cpu", "x86-64-v3"),
    "aarch64": ("-triple", "aarch64-unknown-linux-gnu", "-target-cpu", "generic"),
}
Build = Literal["quick", "optimized", "checked"]
_FLAGS: Mapping[Build, Sequence[str]] = {
    # It takes the compiler a third of the time, and the kernel runs half as fast. The module is optimized already.
    "quick": ("-O0", "-ffp-contract=on"),
    "optimized": ("-O2", "-vectorize-loops", "-vectorize-slp", "-ffp-contract=on"),
    # Hooks of the checker for each load and store.
    "checked": (
        *("-O1", "-ffp-contract=on", "-fsanitize-coverage-type=1"),
        *("-fsanitize-coverage-trace-loads", "-fsanitize-coverage-trace-stores"),
    ),
}
# LLVM defines no result of abs(-2^63) and of shifts by more than the width, and the optimizer makes another of it.
_UNDEFINED = re.compile(r"@(?:llvm|air)\.abs\.|= (?:shl|lshr|ashr) (?:nsw |nuw |exact )*[^,\n]*, %")
_RUNTIME_FLAGS = (
    *("-x", "c++", "-std=c++17", "-O2", "-fPIC", "-nostdinc", "-ffreestanding", "-fno-exceptions", "-fno-rtti"),
    *("-fno-math-errno", "-ffp-contract=off", "-fno-strict-aliasing", "-Wno-everything"),
    *("-Xclang", "-ffloat16-excess-precision=none", "-Xclang", "-fbfloat16-excess-precision=none"),
)


class AirCompiler:
    """Compiles kernels for the host; results are kept in `cache`.

    A perturbation moves results of mathematical functions within Apple's bounds.
    """

    def __init__(
        self,
        clang: Clang,
        cache: BuildCache,
        scheduler: MetalCompiler,
        limits: Limits = _LIMITS,
        perturbation: Perturbation | None = None,
    ) -> None:
        self._clang = clang
        self._limits = limits
        self._perturbation = perturbation
        self.cache = cache
        self.scheduler = scheduler
        self.identity = fingerprint(clang.identity, fingerprint_of_code(*_DECIDING_CODE))
        self._target = _CC1_TARGETS[platform.machine()]
        self._to_assembly = (*self._target, "-disable-llvm-passes", "-emit-llvm", "-Wno-override-module")
        of_library = ("-mrelocation-model", "pic", "-pic-level", "2")
        self._to_object = (*self._target, *of_library, "-emit-obj", "-Wno-override-module")
        self._assembly = CompilerStream(clang, self._to_assembly, limits)

    def under(self, perturbation: Perturbation) -> AirCompiler:
        """The same compiler with this perturbation."""
        other = copy.copy(self)
        other._perturbation = perturbation
        return other

    def disassemble(self, bitcode: bytes) -> str:
        """A module as assembly, with the triple and data layout of the host.

        Raises:
            MalformedKernelError: it is not bitcode.
            KernelCompileError: it exceeds the time limit.
        """
        if text := self._assembly.assembly(bitcode):
            return text
        with tempfile.TemporaryDirectory(prefix="mpsmith-air-") as folder:
            module = Path(folder) / "kernel.bc"
            module.write_bytes(bitcode)
            done = self._run("clang", "-cc1", *self._to_assembly, "-x", "ir", str(module), "-o", "-")
        if not done.succeeded:
            raise MalformedKernelError(f"LLVM cannot read its module: {one_line(ValueError(done.stderr), 300)}")
        return done.stdout

    def built(
        self, bitcode: bytes, name: str, build: Build = "quick", constants: Sequence[Constant] | None = None
    ) -> tuple[Path, bytes]:
        """A shared library with the kernel, and its content, built or from the cache.

        `constants`: the values of its function constants; None for a kernel of torch.

        Raises:
            MalformedKernelError: the module is not a kernel.
            UnsupportedKernelError: it uses an operation that the host does not implement.
            KernelCompileError: the compiler refuses it, or exceeds its limits.
            KernelCacheError: the cache cannot be written.
        """
        given = "" if constants is None else repr(constants)
        key = fingerprint(self.identity, build, repr(self._perturbation), given, bitcode)
        kept = self.cache.find(key, ".so")
        if kept:
            return kept
        try:
            content = self._build(bitcode, name, build, constants)
            path = self.cache.store(key, ".so", content)
        except OSError as error:
            raise KernelCacheError(
                f"its code cannot be written: {error.strerror or error}; make room in {self.cache.folder} and "
                f"{tempfile.gettempdir()}, or name another folder with MPSMITH_CACHE"
            ) from None
        if int(key[:8], 16) % _BUILDS_PER_CHECK == 0:
            self.cache.shrink(CACHE_BYTES)
        return path, content

    def _build(self, bitcode: bytes, name: str, build: Build, constants: Sequence[Constant] | None) -> bytes:
        variant = Variant(self._perturbation, checked=build == "checked")
        assembly = self.disassemble(bitcode)
        assembly = assembly if constants is None else with_constants(assembly, constants)
        if build == "quick" and _UNDEFINED.search(assembly):
            build = "optimized"
        text = host_module(assembly, name, signature_of_bitcode(bitcode, name), variant)
        quick = self._quick.object_file(text.encode()) if build == "quick" else None
        with tempfile.TemporaryDirectory(prefix="mpsmith-air-") as folder:
            unit, library = Path(folder) / "kernel.o", Path(folder) / "kernel.so"
            if quick:
                unit.write_bytes(quick)
            else:
                self._compile(text, build, unit)
            # Symbols of the scheduler and of libm are resolved when the library is loaded.
            done = self._run("ld.lld", "-shared", "-s", "-z", "nostart-stop-gc", str(unit), "-o", str(library))
            if not done.succeeded:
                raise KernelCompileError(f"the linker refuses it: {_reason(done)}")
            return library.read_bytes()

    def _compile(self, text: str, build: Build, unit: Path) -> None:
        source = unit.with_suffix(".ll")
        source.write_text(text, encoding="utf-8")
        called = [name.encode() for name in set(_RUNTIME_FUNCTION.findall(text))]
        needed = (bitcode for bitcode, code in self.runtime.items() if any(name in code for name in called))
        flags = (*self._to_object, *_FLAGS[build], *_linked(needed))
        done = self._run("clang", "-cc1", *flags, "-x", "ir", str(source), "-o", str(unit))
        if not done.succeeded:
            raise KernelCompileError(f"the compiler refuses it: {_reason(done)}")

    @functools.cached_property
    def _quick(self) -> CompilerStream:
        return CompilerStream(self._clang, (*self._to_object, *_FLAGS["quick"], *_linked(self.runtime)), self._limits)

    def _run(self, tool: str, *arguments: str) -> ToolRun:
        try:
            return self._clang.run(tool, *arguments, limits=self._limits)
        except CompilerLimitError as error:
            raise KernelCompileError(str(error)) from None

    @functools.cached_property
    def runtime(self) -> Mapping[Path, bytes]:
        """The runtime functions of AIR's operations as bitcode, a file for each source with its content.

        No file calls a function of another one.
        """
        return dict(self._runtime_unit(source) for source in sorted(_RUNTIME.glob("*.cpp")))

    def _runtime_unit(self, source: Path) -> tuple[Path, bytes]:
        key = fingerprint(self.identity, "runtime", source.name)
        kept = self.cache.find(key, ".bc")
        if kept:
            return kept
        self.cache.discard_old(_CACHE_DAYS)  # results of an older compiler or simulator are useless
        machine = platform.machine()
        target = (f"--target={machine}-linux-gnu", *(("-march=x86-64-v3",) if machine == "x86_64" else ()))
        with tempfile.TemporaryDirectory(prefix="mpsmith-air-") as folder:
            unit = Path(folder) / "unit.bc"
            done = self._clang.run(
                *("clang", *target, *_RUNTIME_FLAGS, "-isystem", str(self._clang.headers / "include")),
                *("-emit-llvm", "-c", str(source), "-o", str(unit)),
            )
            if not done.succeeded:
                raise InternalCompilerError(f"the simulator's own {source.name} does not compile: {done.stderr}")
            content = unit.read_bytes()
            return self.cache.store(key, ".bc", content), content


def _linked(runtime: Iterable[Path]) -> Iterator[str]:
    """The flags that link functions of the runtime."""
    return (word for unit in runtime for word in ("-mlink-builtin-bitcode", str(unit)))


def _reason(done: ToolRun) -> str:
    """The first line with a reason, of a possibly long crash report."""
    lines = [line for line in done.stderr.splitlines() if "error" in line.lower()]
    return one_line(ValueError(lines[0] if lines else done.stderr or "it needs more memory than it is given"), 300)


@functools.cache
def default_air_compiler(perturbation: Perturbation | None = None) -> AirCompiler:
    """The installed compiler with the user's cache.

    Raises:
        CompilerMissingError: ziglang is not installed, or this machine is not Linux on x86-64 or aarch64.
    """
    scheduler = default_compiler()
    return AirCompiler(scheduler.clang, BuildCache(cache_folder() / "air"), scheduler, perturbation=perturbation)
