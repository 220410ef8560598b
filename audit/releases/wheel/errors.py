"""Errors about wheels and the binaries inside them."""

from ....errors import MpsmithError, printable


class WheelError(MpsmithError):
    """The file is not a readable torch wheel for macOS on Apple silicon, or cannot be fetched.

    Messages quote names from files that may be damaged.
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
    """The server does not support HTTP Range requests."""
