"""How far off a device may be, to one unit in the last place: the numbers stand here a second time, on purpose."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.testing._comparison import default_tolerances

from mpsmith.audit.judging.compare import SLACK, TOLERANCES, Difference, NoReference, compare
from mpsmith.audit.model.case import Case
from mpsmith.audit.model.verdicts import CaseVerdict

# (relative, absolute) and the unit in the last place of 1.
LITERALS = {
    torch.float16: (1e-3, 1e-5, 2**-10),
    torch.bfloat16: (1.6e-2, 1e-5, 2**-7),
    torch.float32: (1.3e-6, 1e-5, 2**-23),
    torch.complex64: (1.3e-6, 1e-5, 2**-23),
    torch.complex32: (1e-3, 1e-5, 2**-10),
}


def test_the_tolerances_are_those_of_torch_testing() -> None:
    assert set(TOLERANCES) == set(LITERALS)
    for dtype, (rtol, atol, _) in LITERALS.items():
        assert TOLERANCES[dtype] == (rtol, atol) == default_tolerances(dtype)


def test_the_slack_is_four() -> None:
    assert SLACK == 4.0


def last_within(dtype: torch.dtype, value: float) -> tuple[float, float]:
    """The largest number of the dtype within the tolerance of a power of two, and the next one."""
    rtol, atol, eps = LITERALS[dtype]
    unit = eps * value
    steps = math.floor((rtol * value + min(atol, 16 * unit)) / unit)
    assert steps >= 1
    return value + steps * unit, value + (steps + 1) * unit


def constant(dtype: torch.dtype, device_value: float, value: float, played: Any) -> Case:
    """A call whose value does not depend on its floating inputs: rounding of inputs excuses nothing."""

    def call(count: Tensor, dtype: torch.dtype) -> Tensor:
        shown = device_value if played.turn else value
        return torch.full(count.shape, shown, dtype=torch.float64).to(dtype)

    return Case(call, (torch.zeros(3, dtype=torch.int32), dtype))


@pytest.mark.parametrize("value", [1.0, 1024.0, -1024.0])
@pytest.mark.parametrize("dtype", [d for d in LITERALS if d is not torch.complex32], ids=str)
def test_the_judge_passes_the_last_value_within_and_none_beyond(dtype: torch.dtype, value: float, played: Any) -> None:
    within, beyond = (math.copysign(number, value) for number in last_within(dtype, abs(value)))
    passed = played.judge(constant(dtype, within, value, played))
    assert passed.verdict is CaseVerdict.PASSED
    assert passed.max_error is not None
    assert 0 < passed.max_error <= 1
    wrong = played.judge(constant(dtype, beyond, value, played))
    assert wrong.verdict is CaseVerdict.WRONG
    assert wrong.message.startswith("3 of 3 elements differ; at [0]: ")
    assert wrong.max_error is not None
    assert 1 < wrong.max_error < 3


def test_complex32_is_compared_by_its_own_tolerance() -> None:
    within, beyond = last_within(torch.complex32, 1024.0)
    expected = torch.full((2,), 1024.0, dtype=torch.complex64).to(torch.complex32)

    def compared(value: float) -> object:
        actual = torch.full((2,), value, dtype=torch.complex64).to(torch.complex32)
        return compare(actual, expected, NoReference(), device="cpu")

    assert not isinstance(compared(within), Difference)
    assert isinstance(compared(beyond), Difference)


@pytest.mark.parametrize("dtype", [torch.float64, torch.int32, torch.bool], ids=str)
def test_other_dtypes_have_no_tolerance(dtype: torch.dtype, played: Any) -> None:
    def call(count: Tensor, dtype: torch.dtype) -> Tensor:
        value = torch.ones(3, dtype=torch.float64)
        return (value + 1e-12 if dtype is torch.float64 else value * 0).to(dtype) if played.turn else value.to(dtype)

    assert played.judge(Case(call, (torch.zeros(3, dtype=torch.int32), dtype))).verdict is CaseVerdict.WRONG


@pytest.mark.parametrize(("times", "verdict"), [(3.9, CaseVerdict.PASSED), (4.1, CaseVerdict.WRONG)])
def test_the_device_may_be_four_times_as_far_off_as_the_cpu(times: float, verdict: CaseVerdict, played: Any) -> None:
    def call(count: Tensor, dtype: torch.dtype) -> Tensor:
        error = 0.0 if dtype is torch.float64 else -times / 512 if played.turn else 1 / 512
        return torch.full(count.shape, 1 + error, dtype=torch.float64).to(dtype)

    assert played.judge(Case(call, (torch.zeros(3, dtype=torch.int32), torch.float32))).verdict is verdict


@pytest.mark.parametrize(("times", "verdict"), [(3.9, CaseVerdict.PASSED), (4.1, CaseVerdict.WRONG)])
def test_the_device_may_be_four_times_as_far_off_as_a_unit_of_the_inputs_moves_it(
    times: float, verdict: CaseVerdict, played: Any
) -> None:
    """The result is zero, and moves by 1024 units when x moves by one: closeness to zero says nothing."""

    def amplified(x: Tensor) -> Tensor:
        return (x - 1) * 1024

    def off(x: Tensor) -> Tensor:
        return amplified(x) + times * 1024 * 2**-23

    assert played.judge(Case(played.does(amplified, off), (torch.ones(3),))).verdict is verdict


@pytest.mark.parametrize(
    ("actual", "expected", "right"),
    [
        (torch.float16, torch.float32, True),
        (torch.float32, torch.float16, True),
        (torch.float16, torch.float16, True),
        (torch.bfloat16, torch.float32, False),
        (torch.float64, torch.float32, False),
    ],
)
def test_under_autocast_either_dtype_may_come_out(actual: torch.dtype, expected: torch.dtype, right: bool) -> None:
    result = compare(
        torch.ones(2, dtype=actual),
        torch.ones(2, dtype=expected),
        NoReference(),
        device="cpu",
        rounded_to=torch.float16,
    )
    assert isinstance(result, Difference) is not right


@pytest.mark.parametrize("actual", [torch.float32, torch.float16], ids=str)
@pytest.mark.parametrize(("value", "right"), [(1025.0, True), (1026.0, False)])
def test_under_autocast_the_tolerance_is_the_narrow_dtypes(actual: torch.dtype, value: float, right: bool) -> None:
    expected = torch.full((2,), 1024.0)
    result = compare(
        torch.full((2,), value, dtype=actual), expected, NoReference(), device="cpu", rounded_to=torch.float16
    )
    assert isinstance(result, Difference) is not right


def test_under_autocast_integers_stay_exact() -> None:
    result = compare(torch.tensor([1000]), torch.tensor([1001]), NoReference(), device="cpu", rounded_to=torch.float16)
    assert isinstance(result, Difference)


# ---- what counts as an error


def reference_of(wide: list[float], sensitivity: list[float] | None = None) -> Any:
    class Known:
        def value(self) -> Tensor:
            return torch.tensor(wide, dtype=torch.float64)

        def sensitivity(self, moves: int) -> Tensor | None:
            return None if sensitivity is None else torch.tensor(sensitivity, dtype=torch.float64)

        def flushed(self) -> None:
            pass

    return Known()


def compare_lists(actual: list[float], expected: list[float], reference: Any) -> Any:
    return compare(torch.tensor(actual), torch.tensor(expected), reference, device="cpu")


def test_bitwise_equal_or_uncompared_results_have_no_error() -> None:
    nan = torch.tensor([math.nan, 1.0])
    assert compare(nan, nan.clone(), NoReference(), device="cpu").max_error == 0.0
    assert compare(torch.ones(2), torch.zeros(2), NoReference(), device="cpu", values=False).max_error == 0.0
    assert compare(torch.ones(0), torch.ones(0), NoReference(), device="cpu").max_error == 0.0


@pytest.mark.parametrize("moves", [math.inf, math.nan])
def test_an_element_that_moves_without_bound_gets_no_tolerance_for_it(moves: float) -> None:
    assert isinstance(compare_lists([1.01], [1.0], reference_of([1.0], [moves])), Difference)


def test_where_the_cpu_overflows_nothing_else_becomes_more_tolerant() -> None:
    off = 1 + 2 * 1.13e-5
    assert isinstance(compare_lists([math.inf, off], [math.inf, 1.0], reference_of([1e39, 1.0])), Difference)


def test_the_largest_error_is_that_of_a_finite_element() -> None:
    difference = compare_lists([math.inf, 1 + 2**-15], [1.0, 1.0], reference_of([1.0, 1.0]))
    assert isinstance(difference, Difference)
    assert difference.max_error == pytest.approx(2**-15 / (1.3e-6 + 16 * 2**-23), rel=1e-3)


def test_elements_that_equal_the_cpus_have_no_error() -> None:
    small = 2**-16
    agreement = compare_lists([1.5, 1.0 + small], [1.5, 1.0], reference_of([1.0, 1.0]))
    assert not isinstance(agreement, Difference)
    assert agreement.max_error == pytest.approx(small / (4 * 0.5), rel=1e-3)


def test_the_first_wrong_element_is_shown_with_all_three_values() -> None:
    difference = compare_lists([1.0, 5.0, 6.0], [1.0, 2.0, 3.0], reference_of([1.0, 2.5, 3.5]))
    assert difference.text == "2 of 3 elements differ; at [1]: 5.0, CPU 2.0, float64 2.5"
    exact = compare(torch.tensor([1, 5, 6]), torch.tensor([1, 2, 3]), NoReference(), device="cpu")
    assert exact == Difference("2 of 3 elements differ; at [1]: 5, CPU 2")


def test_a_reference_or_a_sensitivity_of_another_shape_is_none() -> None:
    assert isinstance(compare_lists([1.0, 2.0], [1.0, 1.0], reference_of([2.0])), Difference)
    assert isinstance(compare_lists([1.0, 1.01], [1.0, 1.0], reference_of([1.0, 1.0], [1.0])), Difference)
