"""What can be wrong with a wheel or with the binary inside it."""

from ...errors import MpsmithError


class WheelError(MpsmithError):
    """The file is no readable torch wheel for macOS on Apple silicon, or cannot be had."""


class MalformedBinaryError(WheelError):
    """The Mach-O file, or a Metal library in it, contradicts itself or ends too early."""
