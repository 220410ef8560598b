"""Reflectors of columns where rounding or a sign decides whether and to which side they turn."""

from __future__ import annotations

import math

import pytest
import torch

REGISTERED = ("geqrf", "ormqr", "linalg_ldl_factor_ex")


@pytest.mark.parametrize("zero", [0.0, -0.0])
@pytest.mark.parametrize("below", [[1.0], [0.5, -0.25]])
def test_a_zero_of_either_sign_is_turned_to_the_negative_side(zero: float, below: list[float]) -> None:
    column = torch.tensor([zero, *below])[:, None]
    r, tau = torch.geqrf(column.to("mps"))
    torch.testing.assert_close(r[:1].cpu(), -torch.linalg.vector_norm(column)[None, None])
    torch.testing.assert_close(tau.cpu(), torch.ones(1))


@pytest.mark.parametrize("zero", [0.0, -0.0])
def test_an_imaginary_number_is_turned_to_the_negative_side(zero: float) -> None:
    r, tau = torch.geqrf(torch.tensor([[complex(zero, -0.5)]], dtype=torch.complex64).to("mps"))
    assert r.item() == -0.5
    assert tau.item() == complex(1, -1)


@pytest.mark.parametrize("rest", [1e-30, -1e-36])
def test_values_whose_square_underflows_are_reflected_as_in_lapack(rest: float) -> None:
    column = torch.tensor([[2.0], [rest], [0.0]])
    r, tau = torch.geqrf(column.to("mps"))
    expected_r, expected_tau = torch.geqrf(column)
    assert expected_tau.item() == 2.0
    torch.testing.assert_close(tau.cpu(), expected_tau)
    torch.testing.assert_close(r.cpu(), expected_r, atol=0.0, rtol=1e-5)


def test_a_column_of_one_number_is_left_as_it_is() -> None:
    r, tau = torch.geqrf(torch.tensor([[3.0], [0.0], [0.0]], device="mps"))
    assert r.flatten().tolist() == [3.0, 0.0, 0.0]
    assert tau.tolist() == [0.0]


def test_a_column_with_an_infinity_leaves_no_zeros_that_look_like_a_reflector() -> None:
    r, _ = torch.geqrf(torch.tensor([[1.0, 1.0], [math.inf, 1.0], [2.0, 1.0]], device="mps"))
    assert not r[:, 0].isfinite().any()
    assert not r[:, 1].isfinite().any()


def test_a_product_with_a_complex_infinity_is_as_in_lapack() -> None:
    factors, taus = torch.geqrf(torch.randn(5, 5, dtype=torch.complex64, generator=torch.Generator().manual_seed(0)))
    other = torch.ones(5, 5, dtype=torch.complex64)
    taus[0] = complex(0, math.inf)
    expected = torch.ormqr(factors, taus, other, transpose=True)
    product = torch.ormqr(factors.to("mps"), taus.to("mps"), other.to("mps"), transpose=True).cpu()
    torch.testing.assert_close(product, expected, equal_nan=True)


def test_pivots_after_an_overflow_are_those_of_lapack() -> None:
    """A NaN is the largest element of a column, and on the diagonal it ends the search only behind the last panel."""
    a = torch.full((70, 70), -torch.finfo(torch.float32).max, dtype=torch.complex64)
    a[:, 0] = -a[0, 0]  # the first step makes the others infinite, and the second makes them NaN
    expected = torch.linalg.ldl_factor_ex(a, hermitian=True)
    assert expected.info > 0
    _, pivots, info = (x.cpu() for x in torch.linalg.ldl_factor_ex(a.to("mps"), hermitian=True))
    assert (pivots.tolist(), info) == (expected.pivots.tolist(), expected.info)
