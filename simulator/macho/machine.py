"""How this machine runs programs for aarch64 Linux."""

from __future__ import annotations

import platform
import shutil
import sys

from ..errors import MachOError

EMULATOR = "qemu-aarch64"
ADVICE = "apt-get install qemu-user, or an arm64 machine"


def arm64_command() -> list[str]:
    """The command that runs a program for aarch64 Linux: nothing on such a machine. Raises MachOError if it cannot."""
    if sys.platform != "linux":
        raise MachOError("libraries for macOS are run on Linux only")
    if platform.machine() == "aarch64":
        return []
    found = shutil.which(EMULATOR) or shutil.which(f"{EMULATOR}-static")
    if found is None:
        raise MachOError(f"there is no {EMULATOR} to run arm64 code: {ADVICE}")
    return [found]
