"""Timing on a real mps device with torch.mps events.

The simulated device has none. Tests use fakes; no Mac has run this.
"""

from __future__ import annotations

import os
from typing import Any

import torch


class DeviceClock:
    """Measures GPU time with events in its stream, from the first recorded call to the last one.

    It starts late, because an event makes the process use the GPU. It does nothing in a forked child, which may not use
    the GPU.
    """

    def __init__(self) -> None:
        self._start: Any = None
        self._process = os.getpid()

    def start(self) -> None:
        """Start measuring; later calls do nothing."""
        if self._start is None and self._process == os.getpid():
            self._start = _recorded_event()

    def milliseconds(self) -> float | None:
        """The time since `start` in the stream, waits for the host included; None without a start or where the device
        fails.
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
