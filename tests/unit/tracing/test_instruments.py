"""Signposts and torch.mps events, with fakes in place of a device: no Mac has run this."""

from __future__ import annotations

import os

import pytest
import torch

from mpsmith.tracing.device_clock import DeviceClock


class FakeEvent:
    """Counts milliseconds by the events recorded so far."""

    recorded = 0

    def __init__(self, enable_timing: bool = False) -> None:
        assert enable_timing, "an event without timing measures nothing"
        self.at: int | None = None
        self.waited = False

    def record(self) -> None:
        FakeEvent.recorded += 1
        self.at = FakeEvent.recorded

    def synchronize(self) -> None:
        self.waited = True

    def elapsed_time(self, end: FakeEvent) -> float:
        assert end.waited, "the end may not be there yet"
        assert self.at is not None
        assert end.at is not None
        return 2.5 * (end.at - self.at)


@pytest.fixture
def events(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.mps, "Event", FakeEvent)


@pytest.mark.usefixtures("events")
def test_the_clock_runs_from_the_first_call() -> None:
    clock = DeviceClock()
    assert clock.milliseconds() is None, "a program that calls nothing must not touch the GPU"
    clock.start()
    clock.start()
    assert clock.milliseconds() == 2.5
    assert clock.milliseconds() == 5.0


@pytest.mark.usefixtures("events")
def test_a_forked_child_leaves_the_gpu_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    clock, late = DeviceClock(), DeviceClock()
    clock.start()
    before = FakeEvent.recorded
    monkeypatch.setattr(os, "getpid", lambda: -1)
    late.start()
    assert clock.milliseconds() is None
    assert FakeEvent.recorded == before


@pytest.mark.usefixtures("events")
def test_an_unresponsive_device_gives_no_time(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = DeviceClock()
    clock.start()

    def lost(event: FakeEvent) -> None:
        raise RuntimeError("the command buffer was aborted")

    monkeypatch.setattr(FakeEvent, "synchronize", lost)
    assert clock.milliseconds() is None
