"""Which outcomes of the judge speak for a kernel, which against it, and which say nothing."""

from __future__ import annotations

import pytest

from mpsmith.audit.judging import acceptance
from mpsmith.audit.judging.acceptance import JudgedCase, judged
from mpsmith.audit.model.case import Case
from mpsmith.audit.model.verdicts import CaseVerdict, Outcome
from mpsmith.simulator.fallback_recorders import CounterRecorder

CASE = Case(lambda: None)


@pytest.mark.parametrize("verdict", CaseVerdict)
def test_only_results_of_the_device_are_accepted(verdict: CaseVerdict) -> None:
    assert JudgedCase(0, CASE, Outcome(verdict)).accepted == (verdict is CaseVerdict.PASSED)


@pytest.mark.parametrize("verdict", CaseVerdict)
def test_verdicts_without_execution_refuse_nothing(verdict: CaseVerdict) -> None:
    silent = (CaseVerdict.PASSED, CaseVerdict.SKIPPED, CaseVerdict.REFERENCE_FAILED)
    assert JudgedCase(0, CASE, Outcome(verdict)).refused == (verdict not in silent)


def test_a_refused_fallback_names_the_overload() -> None:
    case = JudgedCase(3, CASE, Outcome(CaseVerdict.FALLBACK, fallbacks=("aten::sort", "aten::mode")))
    assert case.reason == "ran on the CPU: aten::sort, aten::mode"
    assert JudgedCase(3, CASE, Outcome(CaseVerdict.WRONG, message="2 of 3")).reason == "wrong: 2 of 3"


def test_cases_are_judged_in_order_each_under_its_own_name(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[Case, object, int, str]] = []
    recorder, cases = CounterRecorder(), [Case(lambda: 1), Case(lambda: 2)]

    def judge(*question: object) -> Outcome:
        asked.append(question)  # type: ignore[arg-type]
        return Outcome(CaseVerdict.PASSED if len(asked) == 1 else CaseVerdict.WRONG)

    monkeypatch.setattr(acceptance, "judge", judge)
    answers = list(judged(cases, recorder, 7, "mode float32"))
    assert asked == [(cases[0], recorder, 7, "mode float32 0"), (cases[1], recorder, 7, "mode float32 1")]
    assert [(row.position, row.case, row.accepted) for row in answers] == [(0, cases[0], True), (1, cases[1], False)]
