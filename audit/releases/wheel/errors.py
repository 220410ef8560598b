"""What can be wrong with a wheel or with the binary inside it."""

from ....errors import MpsmithError, printable


class WheelError(MpsmithError):
    """The file is not a readable torch wheel for macOS on Apple silicon, or cannot be fetched.

    Messages quote names out of files that may be damaged.
    """

    def __init__(self, message: str) -> None:
        super().__init__(printable(message))


class MalformedBinaryError(WheelError):
    """The Mach-O file, or a Metal library in it, contradicts itself or ends too early."""


class NoMetalKernelsError(WheelError):
    """A release or a binary ships no compiled Metal kernels."""


class UnreachableError(WheelError):
    """The package index, or the server that has a wheel, cannot be reached."""


class RangesNotServedError(WheelError):
    """A file cannot be read piece by piece where it lies."""
