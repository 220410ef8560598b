"""Finds the command with which this machine runs programs for aarch64 Linux."""

from __future__ import annotations

import platform
import shutil
import sys

from ..errors import MachOError

EMULATOR = "qemu-aarch64"
ADVICE = "apt-get install qemu-user, or an arm64 machine"


def arm64_command() -> list[str]:
    """The command that runs a program for aarch64 Linux; empty on aarch64. Raises MachOError if there is none."""
    if sys.platform != "linux":
        raise MachOError("libraries for macOS are run on Linux only")
    if platform.machine() == "aarch64":
        return []
    emulator = shutil.which(EMULATOR) or shutil.which(f"{EMULATOR}-static")
    if emulator is None:
        raise MachOError(f"there is no {EMULATOR} to run arm64 code: {ADVICE}")
    return [emulator]
