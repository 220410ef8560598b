"""Whether the real device still computes, after the kernels of a family ran on it."""

from __future__ import annotations

from ...audit.releases.surface.profiles import coverage_profile
from ...audit.running.canary import canary
from ...errors import MpsmithError
from ...simulator.opening import device_of_this_process


class StoppedDeviceError(MpsmithError):
    """The real mps device of this process computes no more, so what it gave may be memory that nothing wrote."""


def require_computing(family: str) -> None:
    """Raise StoppedDeviceError if a real device computes no more.

    macOS ignores a process after a fault, without an error.
    """
    if not device_of_this_process(coverage_profile).simulated and (problem := canary()):
        raise StoppedDeviceError(
            f"the mps device of this process has stopped computing, so its results say nothing about {family}: "
            f"{problem} (try again; if this repeats, one of its kernels faults)"
        )
