"""What became of the calls of a case decides what the case is evidence of."""

from __future__ import annotations

from collections import Counter

import pytest

from mpsmith.audit.model.launches import Launches, LaunchesByOverload, count_case, grade_of_case, kernels_in
from mpsmith.audit.model.verdicts import CaseVerdict, Grade, Outcome

PASSED = Outcome(CaseVerdict.PASSED)
LAUNCHED = Launches(2, Counter(exp_dense=2))
STOOD_IN = Launches(stood_in=Counter({"MPSGraph": 1}))


@pytest.mark.parametrize(
    ("launches", "grade"),
    [
        ({"aten::exp": LAUNCHED}, Grade.SHIPPED_KERNEL),
        ({"aten::exp": LAUNCHED, "aten::mul.Tensor": STOOD_IN}, Grade.DISPATCH_ONLY),
        ({"aten::exp": Launches(1, Counter(exp_dense=1), Counter(odd=1))}, Grade.DISPATCH_ONLY),
        ({"aten::mul.Tensor": STOOD_IN}, Grade.DISPATCH_ONLY),
        ({}, Grade.DISPATCH_ONLY),
    ],
)
def test_a_case_is_of_shipped_kernels_only_if_they_alone_computed(launches: LaunchesByOverload, grade: Grade) -> None:
    assert grade_of_case(launches, PASSED) is grade


def test_a_case_in_which_something_fell_back_is_not() -> None:
    fell_back = Outcome(CaseVerdict.FALLBACK, fallbacks=("aten::mode",))
    assert grade_of_case({"aten::exp": LAUNCHED}, fell_back) is Grade.DISPATCH_ONLY


def test_cases_are_counted_by_overload_and_only_those_of_shipped_kernels() -> None:
    together: LaunchesByOverload = {}
    count_case(together, {"aten::exp": Launches(2, Counter(exp_dense=2))}, Grade.SHIPPED_KERNEL)
    mixed = {"aten::exp": Launches(1, Counter(exp_strided=1)), "aten::mul.Tensor": Launches(stood_in=Counter(odd=3))}
    count_case(together, mixed, Grade.DISPATCH_ONLY)
    assert together == {
        "aten::exp": Launches(3, Counter(exp_dense=1, exp_strided=1), Counter(), cases=1),
        "aten::mul.Tensor": Launches(0, Counter(), Counter(odd=1), cases=0),
    }
    assert kernels_in(together) == ["exp_dense", "exp_strided"]
    count_case(together, {"aten::exp": Launches(1, Counter(exp_dense=1))}, Grade.HOST_CODE)
    assert together["aten::exp"].cases == 2
