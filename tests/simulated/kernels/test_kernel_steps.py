"""A step of a program for each kernel of a family: what falls back without it and with it."""

from __future__ import annotations

import pytest

from mpsmith.kernels.verification import steps
from mpsmith.kernels.verification.steps import ProgramStep, steps_of

pytestmark = pytest.mark.usefixtures("nothing_registered", "fallback_enabled", "warnings_kept")


@pytest.fixture
def warnings_kept(recwarn: pytest.WarningsRecorder) -> None:
    """Fallbacks warn here, as they should."""


def test_kernels_end_the_fallbacks_of_a_training_step() -> None:
    step = next(step for step in steps_of("pdist") if step.trains)
    both = ("aten::_pdist_forward", "aten::_pdist_backward")
    assert step == ProgramStep("pdist", "nn.functional.pdist", True, both, (), both)


def test_step_reports_errors(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*arguments: object) -> None:
        raise RuntimeError("out of ideas\nin two lines")

    monkeypatch.setattr(steps, "_run", broken)
    assert {step.error for step in steps_of("heaviside")} == {"out of ideas"}
