"""A device for the judge that the CPU plays."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
import torch

from mpsmith.audit.judging import judge
from mpsmith.audit.judging.call_tracer import CallTracer
from mpsmith.audit.judging.judge import Trial
from mpsmith.audit.model.case import Case
from mpsmith.audit.model.verdicts import Outcome


class PlayedDevice:
    """The CPU plays the device; the test says what the device does otherwise.

    Attributes:
        turn: whether the device's run is going on.
        falls_back: the operators that fall back in every context that is recorded.
        memory: bytes in use; a call may add to them.
        waits: how often the device was waited for.
        collected: the generations of the garbage collections that were asked for; none is made.
    """

    def __init__(self) -> None:
        self.turn = False
        self.falls_back: list[str] = []
        self.memory = 0
        self.waits = 0
        self.collected: list[int] = []

    def does(self, good: Callable[..., Any], bad: Callable[..., Any]) -> Callable[..., Any]:
        """A call that is `good` on the CPU and in float64, and `bad` on the device."""
        return lambda *args, **kwargs: (bad if self.turn else good)(*args, **kwargs)

    @contextmanager
    def recording(self) -> Iterator[list[str]]:
        """Stands for the recorder of fallbacks."""
        names: list[str] = []
        try:
            yield names
        finally:
            names += self.falls_back

    def judge(self, case: Case, seed: int = 0, tracer: CallTracer | None = None) -> Outcome:
        """What the whole judge says of the case, its memory looked at too."""
        return judge.judge(case, self, seed, "example", tracer)  # type: ignore[arg-type]

    def synchronize(self) -> None:
        """Stands for torch.mps.synchronize."""
        self.waits += 1


@pytest.fixture
def played(monkeypatch: pytest.MonkeyPatch) -> PlayedDevice:
    """The device; torch.mps answers for it while the test runs."""
    device = PlayedDevice()
    original = Trial._guarded

    def guarded(self: Trial, stage: str, run: Callable[[], Any]) -> Any:
        device.turn = True
        try:
            return original(self, stage, run)
        finally:
            device.turn = False

    monkeypatch.setattr(Trial, "_guarded", guarded)
    monkeypatch.setattr(judge, "DEVICE", "cpu")
    monkeypatch.setattr(judge.gc, "collect", device.collected.append)
    monkeypatch.setattr(torch.mps, "synchronize", device.synchronize)
    monkeypatch.setattr(torch.mps, "manual_seed", lambda seed: torch.default_generator.manual_seed(seed))
    monkeypatch.setattr(torch.mps, "get_rng_state", lambda: torch.default_generator.get_state())
    monkeypatch.setattr(torch.mps, "current_allocated_memory", lambda: device.memory)
    return device
