"""Sorting by the shipped kernels: layouts, windows, and lengths that are merged or sorted by digits.

Few kernels, since each takes long to compile.
"""

from __future__ import annotations

import pytest
import torch

from support.shipped_kernels import LAYOUTS, Shipped, assert_near, normal, on_both

pytestmark = pytest.mark.network


@pytest.mark.parametrize("layout", sorted(LAYOUTS.keys() - {"empty"}))
def test_every_layout_along_every_dimension(shipped: Shipped, layout: str) -> None:
    x = LAYOUTS[layout](normal(torch.float32))
    for dim in range(max(x.dim(), 1)):
        for descending in (False, True):
            expected = torch.sort(x, dim=dim, descending=descending, stable=True)
            actual = shipped.run(torch.sort, x, dim=dim, descending=descending, stable=True)
            assert_near(actual[0], expected[0])
            assert_near(actual[1], expected[1])


@pytest.mark.parametrize("overload", ["topk", "topk.values"])
def test_topk(shipped: Shipped, overload: str) -> None:
    x = normal(torch.float32)((6, 50))
    for dim in (0, 1):
        if overload == "topk":
            actual, expected = on_both(shipped, overload, x, 3, dim)
            assert_near(actual[0], expected[0])
            assert_near(actual[1], expected[1])
        else:
            values, indices = torch.empty(0, device="mps"), torch.empty(0, dtype=torch.int64, device="mps")
            shipped.run(torch.topk, x, 3, dim, out=(values, indices))
            assert_near(values, torch.topk(x, 3, dim)[0])


def test_kthvalue(shipped: Shipped) -> None:
    x = normal(torch.float32)((6, 50))
    for dim, keepdim in ((0, False), (1, True)):
        actual, expected = shipped.run(torch.kthvalue, x, 3, dim, keepdim), torch.kthvalue(x, 3, dim, keepdim)
        assert_near(actual[0], expected[0])
        assert_near(actual[1], expected[1])


def test_halves_digit_by_digit(shipped: Shipped) -> None:
    x = normal(torch.float16)((2, 3000))
    actual = shipped.run(torch.sort, x, dim=1, stable=True, kernels=["radix_scatter_final_half_8bit_u16"])
    expected = torch.sort(x, dim=1, stable=True)
    assert_near(actual[0], expected[0])
    assert_near(actual[1], expected[1])


def test_bytes_digit_by_digit_with_nothing_lost(shipped: Shipped) -> None:
    x = normal(torch.int8, scale=50)((30000,))
    actual, expected = (
        shipped.run(torch.sort, x, stable=True, descending=True),
        torch.sort(x, stable=True, descending=True),
    )
    assert_near(actual[0], expected[0])
    assert_near(actual[1], expected[1])
