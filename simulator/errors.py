"""The errors of the simulator."""

from __future__ import annotations

from ..errors import MpsmithError, printable


class SimulatorError(MpsmithError):
    """The simulated device cannot be built or loaded here; the message says why and what to do."""


# ------------------------------------------------------------------------------------------ the compiler
class CompilerMissingError(MpsmithError, RuntimeError):
    """No compiler is installed, or it does not start here."""


class CompilerLimitError(MpsmithError, RuntimeError):
    """The compiler took more time than it was given."""


class InternalCompilerError(MpsmithError, RuntimeError):
    """The compiler or the runtime of the simulator failed: a fault of mpsmith, not of the source."""


# ------------------------------------------------------------------------------------------ Metal source and kernels
class MetalSyntaxError(MpsmithError, SyntaxError, RuntimeError):
    """The Metal source does not compile; `filename` and `lineno` are those of the Metal source.

    torch raises a SyntaxError from `compile_shader`, and older releases a RuntimeError. This is both.
    """

    def __init__(self, message: str, filename: str | None = None, line: int | None = None) -> None:
        super().__init__(message)
        self.filename = filename
        self.lineno = line

    def __str__(self) -> str:
        return self.msg


class MetalRuntimeError(MpsmithError, RuntimeError):
    """A kernel cannot be called this way, or did something invalid."""


class UndefinedLanesError(MetalRuntimeError):
    """The result of a kernel depends on inactive lanes of a SIMD group, whose values are undefined.

    The arguments hold the result with zero in such lanes, as measured on Apple silicon.
    """


class MetalValueError(MpsmithError, ValueError):
    """An argument's value is out of range, such as a threadgroup that is too large."""


# ------------------------------------------------------------------------------------------ libraries for macOS
class MachOError(SimulatorError):
    """Libraries for macOS cannot be run here, or the process that runs them failed; the message says what to do."""


# ------------------------------------------------------------------------------------------ compiled Metal kernels
class AirError(SimulatorError):
    """A compiled Metal kernel cannot be read, compiled or run on the host."""


class MalformedLibraryError(AirError):
    """A Metal library is damaged. Messages quote names from such files."""

    def __init__(self, message: str) -> None:
        super().__init__(printable(message))


class OtherPlatformError(MalformedLibraryError):
    """A Metal library is not for macOS."""


class MalformedKernelError(AirError):
    """A module is not bitcode, or its kernel is invalid."""


class UnsupportedKernelError(AirError):
    """A module uses an operation that the host does not implement; the message names it."""


class KernelCompileError(AirError):
    """The compiler refuses a module, or exceeds its limits."""


class KernelCacheError(AirError):
    """The cache cannot be written: the disk is full, or permission is missing."""


class KernelArgumentError(AirError, ValueError):
    """A launch does not fit the kernel: a missing argument, a wrong type, a threadgroup that is too large."""


class KernelFault(AirError, RuntimeError):  # noqa: N818  (what the kernel did, not what mpsmith did)
    """A kernel did something invalid, such as an access out of bounds."""


# ------------------------------------------------------------------------------------------ extensions of Objective-C++
class ExtensionError(SimulatorError):
    """An extension cannot be built or loaded here; the message says why and what to do."""


class ExtensionLoadError(ExtensionError):
    """A built extension cannot be loaded into this process."""


# ------------------------------------------------------------------------------------------ upstream's host code
class UpstreamError(SimulatorError):
    """A tree, or its code, cannot be used here; the message says why and what to do."""
