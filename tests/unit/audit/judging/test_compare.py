"""The judge of values: what is within tolerance, and what never is."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from mpsmith.audit.judging.compare import SLACK, TOLERANCES, Agreement, Difference, NoReference, compare


class Known:
    """A reference whose values are given."""

    def __init__(self, wide=None, sensitivity=None, flushed=None) -> None:
        self.value = lambda: wide
        self.sensitivity = lambda moves: sensitivity
        self.flushed = lambda: flushed


def check(actual, expected, wide=None, sensitivity=None, flushed=None, **keywords):
    return compare(actual, expected, Known(wide, sensitivity, flushed), device="cpu", **keywords)


FLOATS = [torch.float32, torch.float16, torch.bfloat16, torch.complex64]


@pytest.mark.parametrize("dtype", FLOATS)
def test_equal_bits_agree_without_asking_for_the_reference(dtype: torch.dtype) -> None:
    value = torch.tensor([1.0, math.inf, -0.0, 3.5]).to(dtype)
    # None has neither value() nor sensitivity(): asking it would fail.
    assert compare(value, value.clone(), None, device="cpu") == Agreement(0.0)


def test_nan_agrees_with_nan_only() -> None:
    nan = torch.tensor([math.nan])
    assert isinstance(check(nan, nan.clone()), Agreement)
    assert isinstance(check(nan, torch.tensor([1.0])), Difference)
    assert isinstance(check(torch.tensor([1.0]), nan), Difference)


@pytest.mark.parametrize("bad", [math.inf, -math.inf, math.nan, 1e30])
def test_no_tolerance_lets_infinity_or_nan_pass(bad: float) -> None:
    expected = torch.tensor([1.0, 2.0])
    # The CPU itself is far from the reference here, which widens the tolerance for finite values.
    wide = torch.tensor([1.5, 2.5], dtype=torch.float64)
    assert isinstance(check(torch.tensor([bad, 2.0]), expected, wide), Difference)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize(("units", "right"), [(0.8, True), (1.3, False)])
def test_the_limit_is_one_tolerance_of_the_dtype(dtype: torch.dtype, units: float, right: bool) -> None:
    rtol, atol = TOLERANCES[dtype]
    wide_dtype = torch.complex128 if dtype.is_complex else torch.float64
    expected = torch.full((3,), 1000.0).to(dtype)
    wide = expected.to(wide_dtype)
    actual = (wide * (1 + units * rtol) + atol * units).to(dtype)
    result = check(actual, expected, wide)
    assert isinstance(result, Agreement if right else Difference)
    assert result.max_error == pytest.approx(units, rel=0.25)


@pytest.mark.parametrize(("factor", "right"), [(0.9 * SLACK, True), (1.2 * SLACK, False)])
def test_where_the_cpu_itself_is_off_the_device_may_be_off_by_slack_times_as_much(factor: float, right: bool) -> None:
    wide = torch.ones(4, dtype=torch.float64)
    own_error = 1e-3
    expected = (wide + own_error).float()
    actual = (wide - factor * own_error).float()
    assert isinstance(check(actual, expected, wide), Agreement if right else Difference)


@pytest.mark.parametrize(("moves", "right"), [(0.9 * SLACK, True), (1.2 * SLACK, False)])
def test_an_ill_conditioned_element_may_move_as_far_as_rounded_inputs_move_it(moves: float, right: bool) -> None:
    wide = torch.tensor([1.0, 1.0], dtype=torch.float64)
    sensitivity = torch.tensor([1e-2, 0.0], dtype=torch.float64)
    actual = torch.tensor([1.0 + moves * 1e-2, 1.0])
    assert isinstance(check(actual, wide.float(), wide, sensitivity), Agreement if right else Difference)
    assert isinstance(check(actual.flip(0), wide.float(), wide, sensitivity), Difference), (
        "the other is well-conditioned"
    )


def test_closer_to_the_reference_than_the_cpu_is_right() -> None:
    wide = torch.tensor([math.pi], dtype=torch.float64)
    assert isinstance(check(wide.float(), torch.tensor([3.2]), wide), Agreement)


@pytest.mark.parametrize("dtype", [torch.int8, torch.int64, torch.uint8, torch.bool])
def test_integers_are_exact(dtype: torch.dtype) -> None:
    expected = torch.tensor([0, 1, 1]).to(dtype)
    assert isinstance(check(expected.clone(), expected), Agreement)
    result = check(torch.tensor([0, 1, 0]).to(dtype), expected)
    assert isinstance(result, Difference)
    assert "1 of 3 elements differ; at [2]" in result.text


def test_an_integer_may_be_that_of_float64_where_the_cpus_rounding_chose_another() -> None:
    """The position of a maximum, of which the CPU in bfloat16 sees another."""
    cpus, wide = torch.tensor([3, 7, 9]), torch.tensor([3, 8, 9])
    assert isinstance(check(torch.tensor([3, 8, 9]), cpus, wide), Agreement)
    assert isinstance(check(torch.tensor([3, 6, 9]), cpus, wide), Difference)
    assert isinstance(check(torch.tensor([2, 8, 9]), cpus, wide), Difference)
    # A reference of another shape or dtype says nothing.
    assert isinstance(check(torch.tensor([3, 8, 9]), cpus, wide.double()), Difference)
    assert isinstance(check(torch.tensor([3, 8, 9]), cpus, wide[None]), Difference)


def test_large_integers_are_not_compared_as_floats() -> None:
    big = torch.tensor([2**53 + 1])
    assert isinstance(check(big - 1, big), Difference)


@pytest.mark.parametrize(
    ("actual", "expected", "text"),
    [
        (torch.zeros(2, 3), torch.zeros(3, 2), "shape is [2, 3], not [3, 2]"),
        (torch.zeros(2), torch.zeros(2, dtype=torch.float16), "dtype is torch.float32, not torch.float16"),
        (torch.zeros(2), torch.zeros(2).to_sparse(), "layout is torch.strided, not torch.sparse_coo"),
        (torch.zeros(0, 3), torch.zeros(0, 2), "shape is [0, 3], not [0, 2]"),
    ],
)
def test_metadata_is_compared_even_without_values(actual, expected, text: str) -> None:
    for values in (True, False):
        result = check(actual, expected, values=values)
        assert isinstance(result, Difference)
        assert result.text == text


def test_the_device_is_compared() -> None:
    result = compare(torch.zeros(1), torch.zeros(1), Known(), device="mps")
    assert result == Difference("device is cpu, not mps")


def test_values_are_not_compared_on_request() -> None:
    assert isinstance(check(torch.zeros(2), torch.ones(2), values=False), Agreement)


def test_sparse_tensors_are_compared_by_value() -> None:
    expected = torch.tensor([[0.0, 2.0], [3.0, 0.0]]).to_sparse()
    assert isinstance(check(expected.clone(), expected), Agreement)
    assert isinstance(check(expected * 2, expected), Difference)


@pytest.mark.parametrize("view", [torch.conj, lambda t: torch._neg_view(t.real)])
def test_conjugate_and_negative_views_are_resolved(view) -> None:
    base = torch.tensor([1 + 2j, 3 - 4j])
    lazy = view(base)
    plain = lazy.resolve_conj().resolve_neg().clone()
    assert isinstance(check(lazy, plain), Agreement)
    assert isinstance(check(lazy, plain + 1), Difference)


@given(st.lists(st.floats(width=32), min_size=1, max_size=20), st.integers(0, 19))
def test_one_changed_element_is_always_found(values: list[float], at: int) -> None:
    expected = torch.tensor(values)
    actual = expected.clone()
    position = at % len(values)
    old = actual[position].item()
    # The other sign and far from zero: further away than any tolerance.
    actual[position] = 1.0 if not math.isfinite(old) else -math.copysign(abs(old) + 1000.0, old)
    result = check(actual, expected, expected.double())
    assert isinstance(result, Difference)
    assert result.text.startswith("1 of ")


def test_a_copy_of_a_number_that_comparisons_count_as_zero_keeps_its_bits() -> None:
    # heaviside(tiny, value): with tiny flushed, it is value, which is not normal either and is copied as it is.
    tiny = torch.tensor([-2.9387e-39])
    zero, flushed = torch.zeros(1), torch.zeros(1, dtype=torch.float64)
    assert isinstance(check(tiny, zero, zero.double(), flushed=flushed), Agreement)
    normal = torch.tensor([-1.5e-38])
    assert isinstance(check(normal, zero, zero.double(), flushed=flushed), Difference)
    assert isinstance(check(tiny, torch.ones(1), torch.ones(1).double(), flushed=torch.ones(1).double()), Difference)


def test_a_tangent_without_memory_is_zeros() -> None:
    nothing = torch._efficientzerotensor((2, 3), dtype=torch.complex64)
    # As below a dispatch mode, where torch gives such a tensor no memory before it reads it.
    with torch._C._ExcludeDispatchKeyGuard(torch._C.DispatchKeySet(torch._C.DispatchKey.ZeroTensor)):
        assert check(nothing, torch.zeros(2, 3, dtype=torch.complex64)) == Agreement(0.0)
        assert isinstance(check(nothing, torch.ones(2, 3, dtype=torch.complex64)), Difference)


@pytest.mark.parametrize(
    ("actual", "said"),
    [
        (torch.tensor([1, 2], dtype=torch.int32), ""),
        (torch.tensor([1, 3], dtype=torch.int32), "; after a cast 1 of 2 elements differ; at [1]: 3.0, CPU 2.0"),
        (torch.tensor([1, 2.0009765625], dtype=torch.float16), ""),
        (torch.tensor([1, 2.5], dtype=torch.float16), "; after a cast 1 of 2 elements differ; at [1]: 2.5, CPU 2.0"),
        (torch.tensor([1, 2j]), "; after a cast 1 of 2 elements differ; at [1]: 2j, CPU (2+0j)"),
        (torch.tensor([1.0], dtype=torch.float16).expand(3), ""),
        (torch.tensor([], dtype=torch.int32), ""),
    ],
)
def test_a_difference_of_dtype_compares_the_values_too(actual: Tensor, said: str) -> None:
    result = compare(actual, torch.tensor([1.0, 2.0], dtype=torch.float64), NoReference(), device="cpu")
    assert isinstance(result, Difference)
    assert result.text == f"dtype is {actual.dtype}, not torch.float64{said}"
