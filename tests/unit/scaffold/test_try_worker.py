"""How long a test of a checkout may take: a busy machine costs it nothing."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from mpsmith.scaffold.checkout import worker


@pytest.mark.parametrize(
    ("took", "used", "said"),
    [
        (9, 9, ""),
        (11, 11, "10 s"),
        (11, 20, "10 s"),  # of two threads
        (11, 0.01, "10 s"),  # it sleeps
        (11, 3, ""),  # it waits for a processor
        (49, 9, ""),
        (49, 11, "10 s"),
        (51, 9, "50 s, with 9 s of processor time"),
    ],
)
def test_a_test_that_waits_for_a_processor_has_more_time(
    took: float, used: float, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    events = worker._Events(Path(), lambda tests: None, since=100, used=1)
    monkeypatch.setattr(worker.time, "monotonic", lambda: 100 + took)
    monkeypatch.setattr(worker, "_processor_seconds", lambda session: 1 + used)
    assert events.too_long(10) == said


def test_processor_time_is_that_of_the_session() -> None:
    before = worker._processor_seconds(os.getsid(0))
    while sum(os.times()[:2]) < 0.1:
        pass
    assert before <= worker._processor_seconds(os.getsid(0)) > 0
    assert worker._processor_seconds(-1) == 0
