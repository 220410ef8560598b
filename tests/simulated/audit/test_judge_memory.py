"""A judged case lets go of its tensors at once: some are as large as the machine's memory."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Iterator

import pytest
import torch

from mpsmith.audit.judging.judge import Trial
from mpsmith.audit.model.case import Case
from mpsmith.audit.model.verdicts import CaseVerdict
from mpsmith.simulator.fallback_recorders import CounterRecorder


@pytest.fixture
def no_collection() -> Iterator[None]:
    gc.collect()
    gc.disable()
    yield
    gc.enable()


@pytest.mark.usefixtures("no_collection")
def test_nothing_waits_for_the_garbage_collector() -> None:
    trial = Trial(Case(torch.exp, (torch.rand(8),)), CounterRecorder(), 0, "exp:0")
    assert trial.outcome().verdict is CaseVerdict.PASSED
    kept = weakref.ref(trial)
    del trial
    assert kept() is None
