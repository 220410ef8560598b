"""Checks that the real device still computes after the kernels of a family ran on it."""

from __future__ import annotations

from ...audit.releases.surface.profiles import coverage_profile
from ...audit.running.canary import canary
from ...errors import MpsmithError
from ...simulator.opening import device_of_this_process


class StoppedDeviceError(MpsmithError):
    """The real mps device of this process no longer computes, so its results may be unwritten memory."""


def require_computing(family: str) -> None:
    """Raise StoppedDeviceError if a real device no longer computes.

    After a fault, macOS ignores the work of a process, without an error.
    """
    if not device_of_this_process(coverage_profile).simulated and (problem := canary()):
        raise StoppedDeviceError(
            f"the mps device of this process has stopped computing, so its results say nothing about {family}: "
            f"{problem} (try again; if this repeats, one of its kernels faults)"
        )
