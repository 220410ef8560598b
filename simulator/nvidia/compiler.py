"""Compiles rewritten Metal source to PTX with the clang of the ziglang wheel."""

from __future__ import annotations

import functools
import os
import re
from dataclasses import dataclass
from pathlib import Path

from ...cache import fingerprint
from ...errors import one_line
from ..clang import Clang, CompilerLimitError, Limits, ToolRun
from ..clang.compiler import PLAIN_MESSAGES
from ..errors import PtxError
from ..metal.compiler import INCLUDE as METAL_INCLUDE
from .libdevice import libdevice

INCLUDE = Path(__file__).parent / "include"
DEFAULT_ARCHITECTURE = "sm_90"
"""The default architecture of PTX; drivers compile it for newer GPUs."""

# The oldest version of PTX for each architecture, so that old drivers accept it.
_PTX_VERSIONS = {"sm_70": 63, "sm_75": 63, "sm_80": 70, "sm_86": 71, "sm_89": 78, "sm_90": 78}
_LIMITS = Limits(seconds=120, memory=4 << 30)
_FLAGS = (
    *("-x", "cuda", "--cuda-device-only", "-nocudainc", "-nocudalib", "-nostdinc", "-nostdinc++", "-std=c++17"),
    *("-O2", "-fno-exceptions", "-fno-rtti", "-Wno-everything"),
    # As on the host: each operation is rounded, overflow wraps, casts to integers saturate.
    *("-ffp-contract=off", "-fno-strict-aliasing", "-fno-math-errno"),
    *("-fwrapv", "-fno-strict-float-cast-overflow", "-fno-strict-return", "-fno-finite-loops"),
)
_UNRESOLVED = re.compile(r"^\.extern \.func\s+(?:\([^)]*\)\s+)?(\w+)", re.MULTILINE)
# LLVM 22 emits a comparison that ptxas and the driver refuse.
_REFUSED = re.compile(r"\b(setp\.\w+)\.ftz\.bf16")


def architecture_of(capability: tuple[int, int]) -> str:
    """The newest architecture that clang supports and a GPU of this compute capability runs.

    Raises:
        PtxError: the GPU is older than all of them.
    """
    supported = sorted(tuple(divmod(int(name[3:]), 10)) for name in _PTX_VERSIONS)
    fitting = [version for version in supported if version <= capability]
    if not fitting:
        least = ".".join(map(str, supported[0]))
        raise PtxError(f"a GPU of compute capability {capability[0]}.{capability[1]} is too old: {least} is required")
    major, minor = fitting[-1]
    return f"sm_{major}{minor}"


@dataclass(frozen=True)
class PtxCompiler:
    """Compiles to PTX for an architecture."""

    clang: Clang
    architecture: str = DEFAULT_ARCHITECTURE
    limits: Limits = _LIMITS

    @functools.cached_property
    def identity(self) -> str:
        """Changes with the compiler and with libdevice."""
        mathematics = self._mathematics
        size = mathematics.stat().st_size if mathematics else 0
        return fingerprint(self.clang.identity, str(size))

    def from_metal(self, unit: str) -> str:
        """PTX of a C++ unit of `entry_point.unit`.

        Raises:
            PtxError: clang refuses it, it takes too long, or libdevice is not installed.
        """
        library = self._mathematics
        done = self._run(
            *("clang", *_FLAGS, f"--cuda-gpu-arch={self.architecture}"),
            *("-Xclang", "-target-feature", "-Xclang", f"+ptx{_PTX_VERSIONS[self.architecture]}"),
            *(("-Xclang", "-mlink-builtin-bitcode", "-Xclang", str(library)) if library else ()),
            *("-I", str(INCLUDE), "-I", str(METAL_INCLUDE), *PLAIN_MESSAGES, "-S", "-o", "-", "-"),
            source=unit,
        )
        return self._checked(done)

    @functools.cached_property
    def _mathematics(self) -> Path | None:
        return libdevice()

    def _run(self, *arguments: str, source: str) -> ToolRun:
        try:
            return self.clang.run(*arguments, source=source, limits=self.limits)
        except CompilerLimitError as error:
            raise PtxError(str(error)) from None

    def _checked(self, done: ToolRun) -> str:
        if not done.succeeded:
            lines = [line for line in done.stderr.splitlines() if "error" in line.lower()]
            reason = lines[0] if lines else done.stderr or "it exceeds the memory limit"
            raise PtxError(f"clang refuses it: {one_line(ValueError(reason), 300)}")
        missing = sorted(set(_UNRESOLVED.findall(done.stdout)))
        if missing and self._mathematics is None and all(name.startswith("__nv_") for name in missing):
            raise PtxError(
                f"it needs NVIDIA's libdevice ({', '.join(missing)}): run pip install 'mpsmith[nvidia]', or name "
                "libdevice.10.bc in MPSMITH_LIBDEVICE"
            )
        if missing:
            raise PtxError(f"it needs {', '.join(missing)}, which the GPU does not have")
        return _REFUSED.sub(r"\1.bf16", done.stdout)


def architecture_from_environment() -> str | None:
    """`MPSMITH_NVIDIA_ARCH`, such as sm_80, for PTX compiled on another machine; None if it is not set.

    Raises:
        PtxError: clang does not support the architecture.
    """
    named = os.environ.get("MPSMITH_NVIDIA_ARCH")
    if named and named not in _PTX_VERSIONS:
        raise PtxError(f"MPSMITH_NVIDIA_ARCH={named} is not an architecture: use {', '.join(_PTX_VERSIONS)}")
    return named or None
