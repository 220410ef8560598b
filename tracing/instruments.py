"""What a real mps device says of time: signposts for Apple's Instruments, and torch.mps events.

None of it exists on the simulated device, and none of it has been run on a Mac: the tests put fakes in its place.
"""

from __future__ import annotations

import os
from typing import Any, Literal

import torch

# Intervals show how long the GPU works, events when it has done: Instruments draws a lane for each.
SIGNPOSTS: Literal["interval,event"] = "interval,event"


def start_signposts() -> bool:
    """Let torch write a signpost for each operator, copy and fallback, for Instruments; False where it cannot."""
    if not hasattr(torch._C, "_mps_profilerStartTrace"):
        return False
    torch.mps.profiler.start(mode=SIGNPOSTS, wait_until_completed=False)
    return True


def stop_signposts() -> None:
    """Write no more of them."""
    torch.mps.profiler.stop()


class DeviceClock:
    """Measures by events in the GPU's stream, from the first call that is recorded to the last one.

    It is started late, since an event makes the process use the GPU, and a forked child may not: there it does nothing.
    """

    def __init__(self) -> None:
        self._start: Any = None
        self._process = os.getpid()

    def start(self) -> None:
        """From here on; only the first time counts."""
        if self._start is None and self._process == os.getpid():
            self._start = _recorded_event()

    def milliseconds(self) -> float | None:
        """How long the stream has been at work until now, waits for the host included; None where nothing was asked of
        it, or where the device does not answer any more.
        """
        if self._start is None or self._process != os.getpid():
            return None
        try:
            end = _recorded_event()
            end.synchronize()
            elapsed: float = self._start.elapsed_time(end)
        except RuntimeError:
            return None
        return elapsed


def _recorded_event() -> Any:
    event = torch.mps.Event(enable_timing=True)
    event.record()
    return event
