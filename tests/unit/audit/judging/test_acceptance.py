"""Which outcomes of the judge speak for a kernel, which against it, and which say nothing."""

from __future__ import annotations

import pytest

from mpsmith.audit.cases import Case
from mpsmith.audit.judging.acceptance import JudgedCase
from mpsmith.audit.verdicts import CaseVerdict, Outcome

CASE = Case(lambda: None)


@pytest.mark.parametrize("verdict", CaseVerdict)
def test_only_what_the_device_computed_itself_is_accepted(verdict: CaseVerdict) -> None:
    assert JudgedCase(0, CASE, Outcome(verdict)).accepted == (verdict is CaseVerdict.PASSED)


@pytest.mark.parametrize("verdict", CaseVerdict)
def test_what_was_not_executed_says_nothing(verdict: CaseVerdict) -> None:
    silent = (CaseVerdict.PASSED, CaseVerdict.SKIPPED, CaseVerdict.REFERENCE_FAILED)
    assert JudgedCase(0, CASE, Outcome(verdict)).refused == (verdict not in silent)


def test_a_fallback_is_refused_by_the_name_of_what_fell_back() -> None:
    one = JudgedCase(3, CASE, Outcome(CaseVerdict.FALLBACK, fallbacks=("aten::sort", "aten::mode")))
    assert one.reason == "ran on the CPU: aten::sort, aten::mode"
    assert JudgedCase(3, CASE, Outcome(CaseVerdict.WRONG, message="2 of 3")).reason == "wrong: 2 of 3"
