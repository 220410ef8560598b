"""Preprocesses, checks and builds rewritten Metal source for the host's processor."""

from __future__ import annotations

import functools
import os
import platform
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Literal, get_args

from ...cache import cache_folder, fingerprint, fingerprint_of_code
from ..clang import BuildCache, Clang, CompilerMissingError, InternalCompilerError, ToolRun, installed, messages
from ..clang.compiler import PLAIN_MESSAGES, Limits
from .function_constants import specialized
from .includes import ProgramSource

_HERE = Path(__file__).parent
INCLUDE = _HERE / "include"
RUNTIME = _HERE / "runtime"
MetalVersion = Literal["3.1", "3.2", "4.0"]
METAL_VERSIONS: tuple[MetalVersion, ...] = get_args(MetalVersion)
"""The versions that torch compiles with: of macOS 14, 15 and 26."""

RUN_AS: MetalVersion = "3.2"
"""The version of programs that run on the host."""

# The code that determines the result of a build: the cache key changes with it.
DECIDING_CODE = ("simulator.clang", "simulator.errors", "simulator.metal", "metal_limits", "cache", "errors")

_CACHE_DAYS = 30
_CPU_FEATURES = frozenset({"avx2", "bmi2", "f16c", "fma"})
# Limits for one run of clang: generated or foreign source may need any amount.
_LIMITS = Limits(seconds=1200, memory=8 << 30, processor_seconds=120)

Build = Literal["fast", "checked", "apple", "strict", "strict_constant"]
"""The first two run. `apple` has what Apple's headers refuse. The others have real address spaces: `strict`, and
`strict_constant`, where a device pointer is not a constant pointer and constants at program scope cannot be used."""


def _mllvm(*options: str) -> tuple[str, ...]:
    return tuple(word for option in options for word in ("-mllvm", option))


_COMMON = ("-nostdinc", "-nostdinc++", "-fno-exceptions", "-fno-rtti", "-Wno-everything")
_HOST = (
    *("-x", "c++", "-std=c++17", *_COMMON, "-fPIC", "-fno-plt", "-fvisibility=hidden", "-fconvergent-functions"),
    # Apple rounds after each operation and so do we: no fused multiply-add, no excess precision in half.
    "-ffp-contract=off",
    *("-Xclang", "-ffloat16-excess-precision=none", "-Xclang", "-fbfloat16-excess-precision=none"),
    *("-fno-threadsafe-statics", "-fno-strict-aliasing", "-ffunction-sections", "-fno-math-errno"),
    # Large thread arrays cannot skip the guard page of a stack.
    *("-fno-stack-protector", "-fstack-clash-protection"),
    # Defined behavior as on a GPU: overflow wraps, casts to integers saturate.
    *("-fwrapv", "-fno-strict-float-cast-overflow", "-fno-strict-return", "-fno-finite-loops"),
    # Otherwise two branches with the same end share the call in which their lanes wait, and the lanes reconverge there.
    *_mllvm("-enable-tail-merge=0"),
)


_FLAGS: dict[Build, tuple[str, ...]] = {
    "fast": (*_HOST, "-O2"),
    "checked": (
        *(*_HOST, "-O1", "-DMSL_CHECKED", "-gline-tables-only", "-gdwarf-4"),
        "-fsanitize-coverage=trace-loads,trace-stores,func,trace-pc-guard",
        # The thread sanitizer is here for two effects: the optimizer adds no speculative loads, and copies of whole
        # structs are instrumented, which the coverage hooks do not see.
        *("-fsanitize=thread", *_mllvm("-tsan-instrument-memory-accesses=0", "-tsan-instrument-atomics=0")),
        *_mllvm("-tsan-instrument-func-entry-exit=0"),
    ),
    "apple": (*_HOST, "-DMSL_APPLE"),
    "strict": (
        *("-x", "cl", "-cl-std=clc++2021", "-cl-no-stdinc", "-DMSL_STRICT"),
        *("-Xclang", "-cl-ext=-cl_khr_fp64,-__opencl_c_fp64,+cl_khr_fp16,+__cl_clang_function_pointers,"),
        *("-nostdinc", "-fno-builtin-printf", "-Wno-everything"),
    ),
}
_FLAGS["strict"] = tuple(
    f + "+__cl_clang_variadic_functions,+__cl_clang_bitfields" if f.startswith("-cl-ext=") else f
    for f in _FLAGS["strict"]
)
_FLAGS["strict_constant"] = (*_FLAGS["strict"], "-DMSL_CONSTANT_APART")
_ALL_MESSAGES = ("-ferror-limit=200", *PLAIN_MESSAGES)
_DEFINES = (
    *("-D__METAL__=1", "-D__METAL_MACOS__=1", "-D__HAVE_BFLOAT__=1"),
    *("-D__clang__=1", "-D__FINITE_MATH_ONLY__=0", "-D__LITTLE_ENDIAN__=1", "-D__CHAR_BIT__=8"),
    *("-D__ORDER_LITTLE_ENDIAN__=1234", "-D__ORDER_BIG_ENDIAN__=4321", "-D__BYTE_ORDER__=__ORDER_LITTLE_ENDIAN__"),
)


class MetalCompiler:
    """Compiles for the host with one clang; expensive results are kept in `cache`."""

    def __init__(self, clang: Clang, cache: BuildCache) -> None:
        self.clang = clang
        self.cache = cache
        self.identity = fingerprint(clang.identity, fingerprint_of_code(*DECIDING_CODE))

    def preprocess(self, program: ProgramSource, version: MetalVersion = RUN_AS) -> tuple[str, str]:
        """Metal source with macros expanded and function constants set, and clang's messages.

        The result is empty if there was an error.

        Raises:
            MetalRuntimeError: the source does not say which function constant is meant.
        """
        folders = [word for folder in (*program.folders, INCLUDE) for word in ("-I", str(folder))]
        done = self.clang.run(
            *("clang", "-E", "-undef", "-x", "c++", "-std=c++17", "-nostdinc", "-nostdinc++", *_DEFINES),
            *(f"-D{name}" for name in (f"__METAL_VERSION__={version.replace('.', '')}0", *program.defines)),
            # Clang looks for quoted headers of stdin in the working folder: it must not be a folder of the user.
            *(*PLAIN_MESSAGES, f"-working-directory={INCLUDE}", *folders, "-"),
            source=program.text,
            limits=_LIMITS,
        )
        if not done.succeeded:
            _require_reason(done)
            return "", program.name_files(done.stderr)
        return specialized(program.name_files(done.stdout), program.constants), done.stderr

    def check(self, source: str, build: Build, warnings: Sequence[str] = ()) -> str:
        """Clang's messages about rewritten source.

        Raises:
            InternalCompilerError: clang failed without a message.
        """
        done = self.clang.run(
            *("clang", *self._words(build), *warnings, *_ALL_MESSAGES, "-fsyntax-only", "-"),
            source=source,
            limits=_LIMITS,
        )
        _require_reason(done)
        return done.stderr

    def check_and_build(self, source: str, build: Build) -> tuple[str, bytes | None]:
        """Clang's messages about rewritten source, and a shared library if there was no error.

        Parsing takes half of the time of a check or a build: this parses once.

        Raises:
            InternalCompilerError: clang failed without a message.
        """
        with tempfile.TemporaryDirectory(prefix="mpsmith-metal-") as folder:
            target = str(Path(folder) / "kernel.o")
            done = self.clang.run(
                *("clang", *self._words(build), *_ALL_MESSAGES, "-", "-c", "-o", target), source=source, limits=_LIMITS
            )
            if not done.succeeded:
                _require_reason(done)
                return done.stderr, None
            return done.stderr, self._linked(Path(folder), [target])

    def build(self, source: str, build: Build) -> bytes:
        """Build a shared library from rewritten source.

        Raises:
            InternalCompilerError: source that passed the check does not build.
        """
        with tempfile.TemporaryDirectory(prefix="mpsmith-metal-") as folder:
            return self._library(Path(folder), [([*self._words(build), "-"], source)])

    @functools.cached_property
    def runtime(self) -> Path:
        """The scheduler and the checker as a shared library."""
        key = fingerprint(self.identity, "runtime")
        kept = self.cache.find(key, ".so")
        if kept:
            return kept[0]
        self.cache.discard_old(_CACHE_DAYS)  # results of an older compiler or simulator are useless
        machine = platform.machine()
        headers = self.clang.headers
        family = "x86" if machine == "x86_64" else machine
        system = [headers / "include"] + [
            headers / "libc" / "include" / name
            for name in (f"{family}-linux-gnu", "generic-glibc", f"{family}-linux-any", "any-linux-any")
        ]
        flags = [
            *("-x", "c++", "-std=c++17", "-O2", "-fPIC", "-fvisibility=hidden", "-fno-exceptions", "-fno-rtti"),
            *(*self._target(), "-nostdinc", "-D__GLIBC_MINOR__=17", "-D_GNU_SOURCE"),
            *(word for folder in system for word in ("-isystem", str(folder))),
        ]
        with tempfile.TemporaryDirectory(prefix="mpsmith-metal-") as folder:
            units = [([*flags, str(file)], "") for file in sorted(RUNTIME.glob("*.cpp"))]
            return self.cache.store(key, ".so", self._library(Path(folder), units))

    def _library(self, folder: Path, units: Sequence[tuple[Sequence[str], str]]) -> bytes:
        objects: list[str] = []
        for number, (arguments, source) in enumerate(units):
            target = str(folder / f"{number}.o")
            done = self.clang.run("clang", *arguments, "-c", "-o", target, source=source, limits=_LIMITS)
            if not done.succeeded:
                raise InternalCompilerError(f"clang failed on code that had passed its check: {done.stderr.strip()}")
            objects.append(target)
        return self._linked(folder, objects)

    def _linked(self, folder: Path, objects: Sequence[str]) -> bytes:
        library = folder / "library.so"
        # Symbols of the runtime and of libm are resolved when the library is loaded.
        done = self.clang.run(
            "ld.lld", "-shared", "--gc-sections", "-z", "nostart-stop-gc", *objects, "-o", str(library)
        )
        if not done.succeeded:
            raise InternalCompilerError(f"the linker failed: {done.stderr.strip()}")
        return library.read_bytes()

    def _words(self, build: Build) -> tuple[str, ...]:
        """The options of clang for a kernel, with the precompiled header."""
        return (*self._flags(build), "-include-pch", str(self._precompiled(build)))

    def _precompiled(self, build: Build) -> Path:
        """msl/kernel.h as a precompiled header."""
        if build in self._headers:
            return self._headers[build]
        # clang refuses a precompiled header if the files that it names by path have changed. Two clones of mpsmith
        # share the cache, but not this file.
        key = fingerprint(self.identity, "header", str(INCLUDE), build, *self._flags(build))
        kept = self.cache.find(key, ".pch")
        if kept:
            path = kept[0]
        else:
            flags = [f"{f}-header" if f in ("c++", "cl") else f for f in self._flags(build)]
            emit = ["-Xclang", "-emit-pch"] if build.startswith("strict") else []
            if emit:
                flags = list(self._flags(build))
            with tempfile.TemporaryDirectory(prefix="mpsmith-metal-") as folder:
                target = Path(folder) / "kernel.pch"
                done = self.clang.run(
                    *("clang", *flags, "-Xclang", "-fno-pch-timestamp", *emit, *(["-c"] if emit else [])),
                    *(str(INCLUDE / "msl" / "kernel.h"), "-o", str(target)),
                )
                if not done.succeeded:
                    raise InternalCompilerError(f"the simulator's own Metal headers do not compile: {done.stderr}")
                path = self.cache.store(key, ".pch", target.read_bytes())
        self._headers[build] = path
        return path

    @functools.cached_property
    def _headers(self) -> dict[Build, Path]:
        return {}

    def _flags(self, build: Build) -> tuple[str, ...]:
        return (*self._target(), *_FLAGS[build])

    @staticmethod
    def _target() -> tuple[str, ...]:
        machine = platform.machine()
        # v3 (2013 and newer) has the half conversions; without them, clang would call missing library functions.
        level = ("-march=x86-64-v3",) if machine == "x86_64" else ()
        return (f"--target={machine}-linux-gnu", *level)


def _require_reason(done: ToolRun) -> None:
    """Raise if clang failed without an error in the source: it was killed, or ran out of memory."""
    if done.succeeded or any(message.severity == "error" for message in messages(done.stderr)):
        return
    words = [line.strip() for line in done.stderr.splitlines() if line.strip()]
    raise InternalCompilerError(f"the compiler failed without an error message: {words[0] if words else 'no output'}")


def _missing_cpu_features() -> str:
    """The features of `-march=x86-64-v3` that this processor lacks."""
    if platform.machine() != "x86_64":
        return ""
    try:
        text = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
    flags = next((line for line in text.splitlines() if line.startswith("flags")), "")
    return ", ".join(sorted(_CPU_FEATURES - set(flags.split()))) if flags else ""


def metal_cache_folder() -> Path:
    """The cache of compiled Metal kernels: `MPSMITH_METAL_CACHE`, or `metal` in mpsmith's cache folder."""
    own = os.environ.get("MPSMITH_METAL_CACHE")
    return Path(own) if own else cache_folder() / "metal"


@functools.cache
def default_compiler() -> MetalCompiler:
    """The installed compiler with the user's cache.

    Raises:
        CompilerMissingError: ziglang is not installed, or this machine is not Linux.
    """
    if platform.system() != "Linux" or platform.machine() not in ("x86_64", "aarch64"):
        raise CompilerMissingError(
            f"Metal source runs on the host on Linux (x86_64, aarch64) only, not on {platform.system()} "
            f"{platform.machine()}; on a Mac, torch.mps.compile_shader is the real one"
        )
    missing = _missing_cpu_features()
    if missing:
        raise CompilerMissingError(f"Metal source runs on the host on processors of 2013 or newer: no {missing} here")
    return MetalCompiler(installed(), BuildCache(metal_cache_folder()))
