"""Most cases decide whether a call is broken, one case whether there is a kernel; nothing that broke is lost."""

import pytest

from mpsmith.audit.findings.overload_verdict import other_breakages, prevailing_breakage, verdict_of, works
from mpsmith.audit.model.verdicts import CaseVerdict as C
from mpsmith.audit.model.verdicts import OverloadVerdict as V
from mpsmith.audit.releases.surface.overloads import Dispatch


@pytest.mark.parametrize(
    ("cases", "verdict", "beside"),
    [
        ({C.PASSED: 3}, V.NATIVE, {}),
        ({C.PASSED: 99, C.FALLBACK: 1}, V.FALLBACK, {}),
        ({C.PASSED: 99, C.FALLBACK: 9, C.MISSING: 1}, V.MISSING, {}),
        ({C.PASSED: 99, C.DTYPE_GAP: 1}, V.DTYPE_GAP, {}),
        ({C.MISSING: 51, C.WRONG: 50}, V.MISSING, {C.WRONG: 50}),
        ({C.MISSING: 50, C.WRONG: 50}, V.WRONG, {}),
        ({C.PASSED: 2, C.WRONG: 1}, V.NATIVE, {C.WRONG: 1}),
        ({C.PASSED: 1, C.WRONG: 1}, V.WRONG, {}),
        ({C.PASSED: 2, C.WRONG: 1, C.CRASH: 1}, V.CRASH, {C.WRONG: 1}),
        ({C.WRONG: 3, C.TIMEOUT: 1, C.CRASH: 2}, V.WRONG, {C.CRASH: 2, C.TIMEOUT: 1}),
        ({C.TIMEOUT: 2, C.CRASH: 2}, V.CRASH, {C.TIMEOUT: 2}),
        ({C.WRONG: 1, C.REFERENCE_FAILED: 50, C.SKIPPED: 50}, V.WRONG, {}),
        ({C.REFERENCE_FAILED: 1, C.SKIPPED: 5}, V.REFERENCE_FAILED, {}),
        ({C.SKIPPED: 5}, V.UNREACHABLE, {}),
        ({}, V.UNREACHABLE, {}),
    ],
)
def test_the_verdict_of_counted_cases(cases: dict[C, int], verdict: V, beside: dict[C, int]) -> None:
    assert verdict_of(cases, Dispatch.NATIVE, works_somewhere=True) is verdict
    assert other_breakages(cases, verdict) == beside
    assert list(other_breakages(cases, verdict)) == list(beside), "the worst first"


def test_support_is_called_as_the_surface_calls_it() -> None:
    assert verdict_of({C.PASSED: 1}, Dispatch.COMPOSITE_EXPLICIT, works_somewhere=True) is V.COMPOSITE
    assert verdict_of({C.PASSED: 1}, None, works_somewhere=True) is V.NATIVE


def test_a_refused_dtype_is_a_gap_only_where_something_works() -> None:
    assert verdict_of({C.DTYPE_GAP: 1}, Dispatch.NATIVE, works_somewhere=True) is V.DTYPE_GAP
    assert verdict_of({C.DTYPE_GAP: 1}, Dispatch.NATIVE, works_somewhere=False) is V.MISSING


def test_nothing_prevails_where_nothing_broke() -> None:
    assert prevailing_breakage({C.PASSED: 1}) is None
    assert prevailing_breakage({}) is None


@pytest.mark.parametrize(("verdict", "worked"), [(C.PASSED, True), (C.FALLBACK, True), (C.MISSING, False)])
def test_working_verdicts(verdict: C, worked: bool) -> None:
    assert works({verdict: 1}) is worked
    assert not works({verdict: 0})
