"""How much of the absolute tolerance an element gets: the numbers that decide stand here a second time, on purpose."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from torch import Tensor

from mpsmith.audit.judging import compare
from mpsmith.audit.judging.compare import FLUSHED, Agreement, Difference
from mpsmith.audit.judging.signed_zeros import has_signed_complex_zeros, has_signed_zeros
from mpsmith.audit.model.case import Case
from mpsmith.audit.model.verdicts import CaseVerdict

EPS = 2.0**-23
RTOL, ATOL = 1.3e-6, 1e-5


class Known:
    """A reference of which everything is given, and which tells what it was asked for."""

    def __init__(self, wide: Any, sensitivity: Any = None, flushed: Any = None) -> None:
        self._wide = torch.as_tensor(wide, dtype=torch.float64)
        self._sensitivity = sensitivity
        self._flushed = flushed
        self.asked: list[int] = []

    def value(self) -> Tensor:
        return self._wide

    def sensitivity(self, moves: int) -> Tensor | None:
        self.asked.append(moves)
        return None if self._sensitivity is None else torch.as_tensor(self._sensitivity, dtype=torch.float64)

    def flushed(self) -> Tensor | None:
        return None if self._flushed is None else torch.as_tensor(self._flushed, dtype=torch.float64)


def right(actual: Any, expected: Any, reference: Known, dtype: torch.dtype = torch.float32, **options: bool) -> bool:
    mine, cpus = torch.as_tensor(actual, dtype=dtype), torch.as_tensor(expected, dtype=dtype)
    return isinstance(compare.compare(mine, cpus, reference, device="cpu", **options), Agreement)


def test_the_numbers() -> None:
    assert (compare.ULPS, compare.CONDITION, compare.SLACK) == (16.0, 16.0, 4.0)
    assert compare.NEIGHBOURHOOD == 3
    assert compare.MOVES == (2, 8, 24)
    assert compare.LARGEST_TO_MOVE_AGAIN == 1 << 20


@pytest.mark.parametrize("size", [1.0, 2.0**-10, 2.0**-60])
@pytest.mark.parametrize(("ulps", "is_right"), [(26, True), (27, False)])
def test_a_well_conditioned_element_is_held_to_units_in_its_last_place(size: float, ulps: int, is_right: bool) -> None:
    """1.3e-6 is 10.9 of them, and there are 16."""
    assert right([size * (1 + ulps * EPS)], [size], Known([size])) is is_right


@pytest.mark.parametrize(("ulps", "is_right"), [(17, True), (18, False)])
def test_a_small_half_is_held_to_units_in_its_last_place(ulps: int, is_right: bool) -> None:
    """1e-3 is 1.02 of them, and there are 16."""
    size = 2.0**-12
    assert right([size * (1 + ulps * 2**-10)], [size], Known([size]), torch.float16) is is_right


@pytest.mark.parametrize(("error", "is_right"), [(1.29e-5 + 1.3e-4, False), (0.99e-5 + 1.3e-4, True)])
def test_it_is_never_more_than_the_absolute_tolerance(error: float, is_right: bool) -> None:
    assert right([100 + error], [100.0], Known([100.0], [0.9e-6])) is is_right


@pytest.mark.parametrize(("times", "is_right"), [(15.9, True), (16.3, False)])
def test_a_small_result_of_large_terms_may_be_off_by_their_rounding(times: float, is_right: bool) -> None:
    moves = 1e-7
    assert right([1e-6 + times * moves], [1e-6], Known([1e-6], [moves])) is is_right


@pytest.mark.parametrize(
    ("error", "moves", "is_right"),
    [(0.99e-5, 2.51e-18, True), (1.01e-5, 2.51e-18, False), (1e-9, 2.49e-18, False), (1e-9, 0.0, False)],
)
def test_cancellation_gets_the_whole_absolute_tolerance(error: float, moves: float, is_right: bool) -> None:
    assert right([error], [0.0], Known([-1e-17], [moves])) is is_right


@pytest.mark.parametrize(("times", "is_right"), [(3.9, True), (4.1, False)])
def test_the_cpus_error_at_an_element_excuses_the_devices(times: float, is_right: bool) -> None:
    """The CPU misses 2^-10 by 2^-22, which is far from all it may; the device may miss it by four times that."""
    error = 2.0**-22
    limit = times * error + 2**-10 * (RTOL + 16 * EPS)
    assert right([2**-10 - limit], [2**-10 + error], Known([2.0**-10])) is is_right


@pytest.mark.parametrize(("larger", "is_right"), [(7.9, True), (16.1, False)])
def test_the_cpus_error_at_elements_of_about_the_size_excuses_the_devices(larger: float, is_right: bool) -> None:
    small, error = 1.01 * 2.0**-12, 2.0**-22
    large = larger * small
    cpus = torch.tensor([small, large + error], dtype=torch.float32)
    reference = Known([float(cpus[0]), float(cpus[1]) - error])
    assert right([float(cpus[0]) + 2 * error, float(cpus[1])], cpus, reference) is is_right


def test_an_exact_zero_is_zero_unless_terms_cancel() -> None:
    assert not right([1e-9], [0.0], Known([0.0]))
    assert not right([1e-9], [0.0], Known([0.0], [0.0]))
    assert right([1e-9], [0.0], Known([0.0], [1e-9]))


def test_without_a_reference_the_absolute_tolerance_applies() -> None:
    for actual, is_right in ((0.99e-5, True), (1.02e-5, False)):
        result = compare.compare(torch.tensor([actual]), torch.zeros(1), compare.NoReference(), device="cpu")
        assert isinstance(result, Agreement) is is_right


def test_moves_are_computed_on_demand_and_many_only_for_failures() -> None:
    for actual, sensitivity, asked in ((1 + EPS, [1.0], []), (1.1, [1.0], [2]), (1.1, [0.0], [2, 8, 24])):
        reference = Known([1.0], sensitivity)
        right([actual], [1.0], reference)
        assert reference.asked == asked


def test_a_large_tensor_is_moved_fewer_times() -> None:
    size = (1 << 20) + 1
    reference = Known(torch.ones(size), torch.zeros(size))
    assert not right(torch.full((size,), 1.1), torch.ones(size), reference)
    assert reference.asked == [2, 8]


# ---- numbers that are too small to be normal


SMALLEST_NORMAL = 2.0**-126


@pytest.mark.parametrize(
    ("actual", "wide", "is_right"),
    [
        (0.0, SMALLEST_NORMAL * 0.999, True),
        (-0.0, SMALLEST_NORMAL * 0.5, True),
        (0.0, SMALLEST_NORMAL, False),
        (2.0**-127, 2.0**-128, False),
        (2.0**-128 + 2.0**-149, 2.0**-128, True),
    ],
)
def test_a_result_that_is_not_normal_may_be_zero(actual: float, wide: float, is_right: bool) -> None:
    assert right([actual], [wide], Known([wide])) is is_right


def test_flushing_is_named() -> None:
    cpus = torch.tensor([2.0**-127, 1.0])
    result = compare.compare(torch.tensor([0.0, 1.0]), cpus, Known([2.0**-127, 1.0]), device="cpu")
    assert result == Agreement(0.0, FLUSHED)
    assert FLUSHED == "numbers too small to be normal are flushed to zero"
    result = compare.compare(
        torch.tensor([-math.inf]), torch.tensor([-90.0]), Known([-90.0], flushed=[-math.inf]), device="cpu"
    )
    assert result == Agreement(0.0, FLUSHED)


@pytest.mark.parametrize(("actual", "is_right"), [(-math.inf, True), (2.0, True), (2.1, False), (math.inf, False)])
def test_an_input_that_is_not_normal_may_be_zero(actual: float, is_right: bool) -> None:
    flushed = [2.0] if math.isfinite(actual) else [-math.inf]
    assert right([actual], [-90.0], Known([-90.0], flushed=flushed)) is is_right


def test_the_note_reaches_the_outcome(played: Any) -> None:
    tiny = torch.tensor([2.0**-130, 1.0])
    flushing = played.does(torch.log, lambda x: torch.log(torch.where(x.abs() < SMALLEST_NORMAL, 0.0, x)))
    outcome = played.judge(Case(flushing, (tiny,)))
    assert (outcome.verdict, outcome.message) == (CaseVerdict.PASSED, FLUSHED)


# ---- the sign of zero


def signed(actual: list[float], expected: list[float], wide: list[float], asked: bool = True) -> Any:
    shown = compare.compare(torch.tensor(actual), torch.tensor(expected), Known(wide), device="cpu", signed_zeros=asked)
    return shown.text if isinstance(shown, Difference) else "right"


def test_a_zero_has_the_sign_that_the_cpu_and_float64_agree_on() -> None:
    wrong = "the sign of zero: 1 of 2 elements differ; at [1]: 0.0, CPU -0.0"
    assert signed([1.0, 0.0], [1.0, -0.0], [1.0, -0.0]) == wrong
    assert (
        signed([1.0, -0.0], [1.0, 0.0], [1.0, 0.0]) == "the sign of zero: 1 of 2 elements differ; at [1]: -0.0, CPU 0.0"
    )
    assert signed([1.0, 0.0], [1.0, -0.0], [1.0, -0.0], asked=False) == "right"
    assert signed([1.0, 0.0], [1.0, -0.0], [1.0, 0.0]) == "right", "float64 has the other sign"
    assert signed([1.0, 0.0], [1.0, -0.0], [1.0, -1e-60]) == "right", "float64 has no zero there"
    assert signed([1.0, -0.0], [1.0, -0.0], [1.0, -0.0]) == "right"
    assert signed([math.nan, -0.0], [math.nan, -0.0], [math.nan, -0.0]) == "right"
    assert signed([1.0 + EPS, 0.0], [1.0, -0.0], [1.0, -0.0]) == wrong, "where other elements differ within tolerance"


@pytest.mark.parametrize(
    ("call", "has"),
    [
        (torch.neg, True),
        (torch.copysign, True),
        (torch.Tensor.neg_, True),
        (torch.ops.aten.round.decimals, True),
        (torch.sin, True),
        (torch.flip, True),
        (torch.ops.aten.index.Tensor, True),
        (torch.Tensor.__getitem__, True),
        (torch.ops.aten._upsample_nearest_exact2d.vec, True),
        (torch.ops.aten.unfold_copy, True),
        (torch.maximum, False),
        (torch.remainder, False),
        (torch.sum, False),
        (torch.relu, False),
    ],
)
def test_some_operators_have_signed_zeros(call: Any, has: bool) -> None:
    assert has_signed_zeros(Case(call)) is has


@pytest.mark.parametrize(
    ("entry", "has"), [("where", True), ("where.self", True), ("nn.functional.silu", True), ("sum", False), ("", False)]
)
def test_a_wrapped_call_is_known_by_its_entry(entry: str, has: bool) -> None:
    assert has_signed_zeros(Case(lambda: None, entry=entry)) is has


def test_a_complex_zero_in_a_negative_view_has_either_sign() -> None:
    negative = torch.ones(2, dtype=torch.complex64)._neg_view()
    assert has_signed_complex_zeros(Case(torch.flip, (negative._neg_view(),)))
    assert not has_signed_complex_zeros(Case(torch.flip, (negative,)))
    assert not has_signed_complex_zeros(Case(torch.flip, (), {"input": negative}))


@pytest.mark.parametrize(("call", "is_wrong"), [(torch.flip, True), (torch.mul, False)])
def test_complex_copies_keep_the_signs_of_both_parts(played: Any, call: Any, is_wrong: bool) -> None:
    def called(x: Tensor) -> Tensor:
        return torch.complex(x.real, x.imag + 0.0) if played.turn else x.clone()

    called.__name__ = call.__name__
    outcome = played.judge(Case(called, (torch.complex(torch.ones(2), torch.tensor([-0.0, 1.0])),)))
    assert outcome.message.startswith("the sign of zero: 1 of 2 elements differ; at [0]: ") is is_wrong


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16, torch.complex64])
@pytest.mark.parametrize(("call", "is_wrong"), [("index", True), ("interpolate", True), ("sort", False)])
@pytest.mark.parametrize("sign", [-1.0, 1.0])
def test_a_move_of_elements_keeps_the_sign_of_each_zero(
    played: Any, dtype: torch.dtype, call: str, is_wrong: bool, sign: float
) -> None:
    def called(x: Tensor) -> Tensor:
        return torch.where(x == 0, torch.zeros_like(x).copysign(-sign), x) if played.turn else x.clone()

    def of_parts(x: Tensor) -> Tensor:
        return torch.complex(called(x.real), called(x.imag)) if x.is_complex() else called(x)

    of_parts.__name__ = call
    zeros = torch.tensor([math.copysign(0.0, sign), math.copysign(0.0, -sign), 1.0])
    x = torch.complex(zeros, zeros) if dtype.is_complex else zeros.to(dtype)
    outcome = played.judge(Case(of_parts, (x,)))
    assert outcome.message.startswith("the sign of zero: 1 of 3 elements differ; at [0]: ") is is_wrong


def test_an_operator_that_adds_or_interpolates_in_some_modes_has_signed_zeros_in_others() -> None:
    put, zeros = torch.index_put, torch.zeros(2)
    assert has_signed_zeros(Case(put, (zeros, (), zeros)))
    assert not has_signed_zeros(Case(put, (zeros, (), zeros, True)))
    assert not has_signed_zeros(Case(put, (zeros, (), zeros), {"accumulate": True}))
    for mode, moves in (("nearest", True), ("nearest-exact", True), ("bilinear", False), ("area", False)):
        assert has_signed_zeros(Case(torch.nn.functional.interpolate, (zeros,), {"mode": mode})) is moves


@pytest.mark.parametrize("name", ["aten::neg.out", "aten::neg_", "_foreach_neg_", "aten::softplus_backward.grad_input"])
def test_every_spelling_of_an_operator_is_one(name: str) -> None:
    def call() -> None:
        pass

    call.__name__ = name
    assert has_signed_zeros(Case(call))


def test_the_judge_sees_a_lost_sign(played: Any) -> None:
    def neg(x: Tensor) -> Tensor:
        return 0 - x if played.turn else -x

    outcome = played.judge(Case(neg, (torch.tensor([0.0, 1.0]),)))
    assert outcome.message == "the sign of zero: 1 of 2 elements differ; at [0]: 0.0, CPU -0.0"


# ---- well-known mistakes, and right ways to compute the same


SMALL = torch.tensor([1e-4, -3e-3, 0.02, 0.5, 3.0]).mul(1.01)


@pytest.mark.parametrize(
    ("good", "naive"),
    [
        (torch.log1p, lambda x: torch.log(1 + x)),
        (torch.expm1, lambda x: torch.exp(x) - 1),
        (torch.sinh, lambda x: (torch.exp(x) - torch.exp(-x)) / 2),
        (torch.asinh, lambda x: torch.log(x + torch.sqrt(x * x + 1))),
        (torch.tanh, lambda x: (torch.exp(2 * x) - 1) / (torch.exp(2 * x) + 1)),
        (lambda x: torch.sigmoid(-8 / x.abs()), lambda x: 1 - torch.sigmoid(8 / x.abs())),
        (torch.erf, lambda x: 1 - torch.erfc(x)),
    ],
)
def test_a_naive_formula_is_wrong_near_zero(good: Any, naive: Any, played: Any) -> None:
    # Whole numbers of units, so that the CPU is not off where the formula is.
    assert played.judge(Case(played.does(good, naive), (SMALL,))).verdict is CaseVerdict.WRONG


def test_softmax_without_its_tails_is_wrong(played: Any) -> None:
    def coarse(x: Tensor, dim: int) -> Tensor:
        return (torch.softmax(x, dim) * 2**20).round() / 2**20

    case = Case(played.does(torch.softmax, coarse), (torch.linspace(-14, 3, 40), 0))
    assert played.judge(case).verdict is CaseVerdict.WRONG


def test_a_variance_by_its_moments_is_wrong_with_a_large_mean(played: Any) -> None:
    def by_moments(x: Tensor) -> Tensor:
        return ((x * x).mean() - x.mean() ** 2) * x.numel() / (x.numel() - 1)

    x = torch.randn(200, generator=torch.Generator().manual_seed(0)) + 1000
    assert played.judge(Case(played.does(torch.var, by_moments), (x,))).verdict is CaseVerdict.WRONG


def _one_by_one(x: Tensor) -> Tensor:
    total = x.new_zeros(())
    for element in x:
        total = total + element
    return total


@pytest.mark.parametrize(
    ("good", "other"),
    [
        (torch.sum, _one_by_one),
        (torch.sum, lambda x: x.flip(0).cumsum(0)[-1]),
        (torch.mean, lambda x: _one_by_one(x / x.numel())),
        (lambda x: x * 1.7 - 0.3, lambda x: torch.addcmul(torch.tensor(-0.3), x, torch.tensor(1.7))),
        (torch.exp, lambda x: torch.exp2(x * 1.4426950408889634)),
        (torch.var, lambda x: (x - x.mean()).square().sum() / (x.numel() - 1)),
        (lambda x: torch.softmax(x, 0), lambda x: torch.exp(x) / torch.exp(x).sum()),
        (lambda x: torch.log_softmax(x, 0), lambda x: x - torch.logsumexp(x, 0)),
        (torch.sigmoid, lambda x: torch.where(x > 0, 1 / (1 + torch.exp(-x)), torch.exp(x) / (1 + torch.exp(x)))),
        (lambda x: torch.fft.rfft(x).abs(), lambda x: torch.fft.fft(x)[: x.numel() // 2 + 1].abs()),
    ],
)
@pytest.mark.parametrize("seed", range(3))
def test_another_right_way_is_right(good: Any, other: Any, seed: int, played: Any) -> None:
    x = torch.randn(300, generator=torch.Generator().manual_seed(seed))

    def in_float32(x: Tensor) -> Tensor:
        return good(x) if x.dtype is torch.float64 else other(x)

    outcome = played.judge(Case(played.does(good, in_float32), (x,)))
    assert outcome.verdict is CaseVerdict.PASSED, outcome.message


def test_a_sum_of_a_thousand_that_cancels_may_be_added_in_any_order(played: Any) -> None:
    x = torch.randn(1000, generator=torch.Generator().manual_seed(0))
    x = torch.cat([x, -x[torch.randperm(1000, generator=torch.Generator().manual_seed(1))]])
    assert played.judge(Case(played.does(torch.sum, _one_by_one), (x,))).verdict is CaseVerdict.PASSED


@pytest.mark.parametrize(("zeros", "signed_zeros"), [([-0.0, 1.0], True), ([0.0, 1.0], True), ([0.0, -0.0], False)])
def test_a_choice_among_zeros_of_one_sign_has_that_sign(zeros: list[float], signed_zeros: bool) -> None:
    assert has_signed_zeros(Case(torch.aminmax, (torch.tensor(zeros),))) is signed_zeros
    assert not has_signed_zeros(Case(torch.aminmax, (torch.tensor([1.0, 2.0]),)))


@pytest.mark.parametrize("clamp", [torch.clamp, torch.clamp_max, torch.clamp_min, torch.clip])
def test_a_bound_that_is_a_number_may_be_a_zero_of_the_other_sign(clamp: Any) -> None:
    negative = torch.tensor([-0.0, 1.0])
    assert [has_signed_zeros(Case(clamp, (negative, bound))) for bound in (negative, -0.0, 0.0, 0)] == [1, 1, 0, 0]
    assert has_signed_zeros(Case(clamp, (torch.tensor([0.0]), 0.0)))
    assert not has_signed_zeros(Case(clamp, (negative,), {"max": 0.0}))
