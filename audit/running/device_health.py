"""Checks a worker's real mps device: whether it still computes, and whether the worker holds too much of its memory.

The device is checked before rows are written, because the rows of a process whose work macOS ignores are worthless. If
the check fails, the worker ends, another one executes its group again, and `isolated.py` finds the case at fault.
"""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path

from ...errors import MpsmithError
from .canary import canary
from .worker_exit import DEVICE_LOST, at_risk, log_path

# The exit code of a worker that ended itself because it has taken enough memory.
RECYCLED = 87
# MPSGraph keeps a graph for each shape for ever (pytorch #181213), outside of what the driver reports, too.
MOST_CASES = 4000
# Seconds of processor time, see time_limit, in which the device must compute something in a new process.
SECONDS_TO_START = 60.0

# The end of what Metal prints when a command buffer fails, and what it means.
_FAULT = re.compile(r"kIOGPUCommandBufferCallbackError(\w+)")
_MEANING = {
    "Timeout": "macOS ended a kernel that ran for too long",
    "Hang": "a kernel hung",
    "PageFault": "a kernel read or wrote outside of its memory",
    "OutOfMemory": "a kernel ran out of memory",
    "SubmissionsIgnored": "macOS ignores the kernels of this process after a fault",
    "InnocentVictim": "macOS discarded a kernel because of another process",
}


def fault_in(text: str) -> str:
    """Describe the first command buffer error that Metal reports in this text; "" if it reports none."""
    match = _FAULT.search(text)
    return f"{_MEANING.get(match[1], 'a command buffer failed')} ({match[0]})" if match else ""


class DeviceHealth:
    """Checks the real device of this worker process.

    Args:
        scratch: the folder with this worker's log.
        memory: bytes of device memory that this worker may keep.
    """

    def __init__(self, scratch: Path, memory: int) -> None:
        self._log = log_path(scratch, os.getpid())
        self._memory = memory
        self._cases = 0
        self._has_computed = False

    def require_at_start(self) -> None:
        """Raise MpsmithError if the device does not compute in a process that has executed nothing.

        This process ends if the device does not answer, so a pool's initializer must not call this (endless restarts).
        """
        if self._has_computed:
            return
        with at_risk(SECONDS_TO_START):
            problem = canary()
        if problem:
            raise MpsmithError(
                f"the mps device does not compute in a new process: {problem} (restart the Mac, then continue with "
                "--resume)"
            )
        self._has_computed = True

    def require(self) -> None:
        """End this process if a command buffer failed or the device does not compute."""
        reported = self._log.read_text(errors="replace") if self._log.exists() else ""
        problem = fault_in(reported) or canary()
        if problem:
            print(problem, file=sys.stderr, flush=True)
            os._exit(DEVICE_LOST)

    def recycle_if_full(self, cases: int) -> None:
        """Count executed cases. End this process if they are many or fill the memory: a new process continues."""
        import torch

        self._cases += cases
        if self._cases < MOST_CASES and torch.mps.driver_allocated_memory() > self._memory:
            torch.mps.empty_cache()
        if self._cases >= MOST_CASES or torch.mps.driver_allocated_memory() > self._memory:
            os._exit(RECYCLED)
