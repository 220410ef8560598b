"""Normalizations, searches in sorted rows and products of vectors by the shipped kernels."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from support.shipped_kernels import Shipped, assert_near, normal

pytestmark = pytest.mark.network


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16], ids=str)
@pytest.mark.parametrize("normalized", [(8,), (5, 200), (6000,)], ids=str)
def test_layer_norm(shipped: Shipped, normalized: tuple[int, ...], dtype: torch.dtype) -> None:
    x = normal(dtype)((3, *normalized))
    for weight, bias in ((None, None), (normal(dtype, 1)(normalized), normal(dtype, 2)(normalized))):
        expected = torch.native_layer_norm(x, normalized, weight, bias, 1e-5)
        actual = shipped.run(torch.native_layer_norm, x, normalized, weight, bias, 1e-5)
        for one, other in zip(actual, expected, strict=True):
            assert_near(one, other, scale=5)


@pytest.mark.parametrize("affine", [False, True])
@pytest.mark.parametrize("sizes", [(2, 4, 9, 2), (3, 6, 700, 3)], ids=str)
def test_group_norm_and_its_gradients(shipped: Shipped, sizes: tuple[int, int, int, int], affine: bool) -> None:
    n, c, hw, groups = sizes
    x = normal(torch.float32)((n, c, hw))
    weight, bias = (normal(torch.float32, 1)((c,)), normal(torch.float32, 2)((c,))) if affine else (None, None)
    expected = torch.native_group_norm(x, weight, bias, n, c, hw, groups, 1e-5)
    actual = shipped.run(torch.native_group_norm, x, weight, bias, n, c, hw, groups, 1e-5)
    for one, other in zip(actual, expected, strict=True):
        assert_near(one, other, scale=5)
    gradient = normal(torch.float32, 3)((n, c, hw))
    given = (gradient, x, expected[1], expected[2], weight, n, c, hw, groups, [True, affine, affine])

    def backward(*arguments: Tensor) -> list[Tensor]:
        return [t for t in torch.ops.aten.native_group_norm_backward(*arguments) if t is not None and t.numel()]

    for one, other in zip(shipped.run(backward, *given), backward(*given), strict=True):
        assert_near(one, other, scale=50)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.int64, torch.uint8], ids=str)
def test_searches(shipped: Shipped, dtype: torch.dtype) -> None:
    rows, x = normal(dtype, scale=9)((3, 20)).sort(1)[0], normal(dtype, 1, scale=9)((3, 7))
    for right in (False, True):
        expected = torch.searchsorted(rows, x, right=right)
        assert_near(shipped.run(torch.searchsorted, rows, x, right=right), expected)
        expected = torch.bucketize(x, rows[0], right=right, out_int32=True)
        assert_near(shipped.run(torch.bucketize, x, rows[0], right=right, out_int32=True), expected)
    mixed = normal(dtype, 2, scale=9)((3, 20))
    order = mixed.argsort(1)
    expected = torch.searchsorted(mixed, x, sorter=order)
    assert_near(
        shipped.run(lambda *given: torch.searchsorted(given[0], given[1], sorter=given[2]), mixed, x, order), expected
    )


@pytest.mark.parametrize("dtype", [torch.float32, torch.int64, torch.complex64], ids=str)
def test_cross(shipped: Shipped, dtype: torch.dtype) -> None:
    a, b = normal(dtype)((4, 3, 5)), normal(dtype, 1)((4, 3, 5))
    for left, right in ((a, b), (a.transpose(0, 2), b.transpose(0, 2)), (a, b[:1])):
        expected = torch.linalg.cross(left, right, dim=1)
        actual = shipped.run(lambda one, other: torch.linalg.cross(one, other, dim=1), left, right)
        assert_near(actual, expected)


def test_renorm(shipped: Shipped) -> None:
    x = normal(torch.float32)((4, 5, 6))
    for order, dim in ((2, 0), (1, 1)):
        assert_near(shipped.run(torch.renorm, x, order, dim, 1.5), torch.renorm(x, order, dim, 1.5))
