"""Products of matrices by the shipped kernels of each release."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from support.shipped_kernels import Shipped, assert_near, on_both
from support.shipped_layouts import layouts

pytestmark = pytest.mark.network

INTEGERS = [torch.int64, torch.int32, torch.int8, torch.uint8]
SIZES = [(3, 5, 7), (17, 20, 33), (1, 4, 1)]


def seeded(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def numbers(*shape: int, dtype: torch.dtype, seed: int = 0) -> Tensor:
    return torch.randint(0, 9, shape, generator=seeded(seed)).to(dtype)


@pytest.mark.parametrize("dtype", INTEGERS, ids=str)
@pytest.mark.parametrize(("rows", "inner", "columns"), SIZES)
def test_matrices_of_integers(shipped: Shipped, dtype: torch.dtype, rows: int, inner: int, columns: int) -> None:
    left = layouts(lambda shape: numbers(*shape, dtype=dtype), rows, inner)
    right = layouts(lambda shape: numbers(*shape, dtype=dtype, seed=1), inner, columns)
    for a, b in zip(left, right, strict=True):
        assert_near(*on_both(shipped, "mm", a, b))
        for bias in (numbers(rows, columns, dtype=dtype), numbers(columns, dtype=dtype)):
            assert_near(*on_both(shipped, "addmm", bias, a, b, alpha=2, beta=3))


@pytest.mark.parametrize("dtype", INTEGERS, ids=str)
@pytest.mark.parametrize(("rows", "inner", "columns"), SIZES)
def test_batches_of_integers(shipped: Shipped, dtype: torch.dtype, rows: int, inner: int, columns: int) -> None:
    left = layouts(lambda shape: numbers(*shape, dtype=dtype), 4, rows, inner)
    right = layouts(lambda shape: numbers(*shape, dtype=dtype, seed=1), 4, inner, columns)
    for a, b in zip(left, right, strict=True):
        assert_near(*on_both(shipped, "bmm", a, b))
        bias = numbers(rows, columns, dtype=dtype, seed=2)
        assert_near(*on_both(shipped, "baddbmm", bias, a, b, alpha=2, beta=3))
        assert_near(*on_both(shipped, "addbmm", bias, a, b, alpha=2, beta=3))


def test_complex_numbers_with_a_long_inner_size(shipped: Shipped) -> None:
    a, b = torch.randn(3, 2050, dtype=torch.complex64), torch.randn(2050, 4, dtype=torch.complex64)
    assert_near(*on_both(shipped, "mm", a, b), 10)
    assert shipped.reasons(torch.mm, a[:, :5], b[:5]) == {"MPSGraph, or a gemv kernel"}


def test_narrow_halves_with_padded_rows(shipped: Shipped) -> None:
    a, b = torch.randn(5, 21).half()[:, :18], torch.randn(7, 20).half()[:, :18].t()
    assert_near(*on_both(shipped, "mm", a, b), 4)
    dense = a.contiguous(), b.contiguous()
    assert shipped.reasons(torch.mm, *dense) == {"MPSGraph, or a gemv kernel"}
