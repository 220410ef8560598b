"""What can be wrong with a compiled Metal kernel or with the library that holds it."""

from __future__ import annotations

from ...errors import printable
from ..errors import SimulatorError


class AirError(SimulatorError):
    """A compiled Metal kernel cannot be read, compiled or run on the host; the message names it where it can."""


class MalformedLibraryError(AirError):
    """A Metal library contradicts itself or ends too early.

    Messages quote names out of files that may be damaged.
    """

    def __init__(self, message: str) -> None:
        super().__init__(printable(message))


class MalformedKernelError(AirError):
    """A module is no bitcode, or says of its kernel what cannot be true."""


class UnsupportedKernelError(AirError):
    """A module needs an operation of Apple's that the host has no code for; the message names it."""


class KernelCompileError(AirError):
    """The compiler refuses a module, or takes more time or memory than it is given."""


class KernelCacheError(AirError):
    """What was compiled cannot be kept: no room, or no right to write."""


class KernelArgumentError(AirError, ValueError):
    """A launch does not fit the kernel: a missing argument, a wrong type, a threadgroup that is too large."""


class KernelFault(AirError, RuntimeError):  # noqa: N818  (what the kernel did, not what mpsmith did)
    """A kernel did something that a GPU would not forgive, such as an access out of bounds."""
