"""Operators built from others, and searches, by the shipped kernels."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

from support.shipped_kernels import LAYOUTS, Shipped, assert_near, normal, on_device

pytestmark = pytest.mark.network

DTYPES = [torch.float32, torch.float16, torch.int64, torch.int8]


def same(shipped: Shipped, function: Callable[..., Any], *arguments: Any, kernels: tuple[str, ...] = ("*",)) -> None:
    actual = shipped.run(function, *map(on_device, arguments), kernels=kernels)
    assert_near(actual, function(*(a.clone() if isinstance(a, Tensor) else a for a in arguments)))


@pytest.mark.parametrize("layout", ["contiguous", "transposed", "stepped", "offset"])
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_rolls_and_comparisons(shipped: Shipped, layout: str, dtype: torch.dtype) -> None:
    x = LAYOUTS[layout](normal(dtype))
    for shift in (0, 1, -2, 9):
        same(shipped, lambda x, s=shift: x.roll(s, 1), x, kernels=("cat_*",))
        same(shipped, lambda x, s=shift: x.roll((s, 1), (0, 1)), x, kernels=("cat_*",))
        same(shipped, lambda x, s=shift: x.roll(s), x, kernels=())
    nan = x / 0 if dtype.is_floating_point else x
    same(shipped, torch.isnan, nan, kernels=("ne_*",))
    same(shipped, lambda x: torch.isin(x, 1), x, kernels=("eq_*",))
    same(shipped, lambda x: torch.isin(x, 1, invert=True), x, kernels=("ne_*",))


@pytest.mark.filterwarnings("ignore:torch.searchsorted")
@pytest.mark.parametrize("right", [True, False])
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_searches(shipped: Shipped, dtype: torch.dtype, right: bool) -> None:
    line, rows = normal(dtype)((9,)).sort()[0], normal(dtype)((7, 9)).sort()[0]
    unsorted = normal(dtype, 6)((9,))
    for layout in ("contiguous", "transposed", "stepped"):
        x = LAYOUTS[layout](normal(dtype, 2))
        same(shipped, lambda b, x: torch.searchsorted(b, x, right=right), line, x, kernels=("searchsorted_*_long",))
        by_rows = lambda b, x: torch.searchsorted(b, x, right=right, out_int32=True)  # noqa: E731
        same(shipped, by_rows, rows[: x.size(0)], x, kernels=("searchsorted_*_int",))
        same(shipped, lambda x, b: torch.bucketize(x, b, right=right), x, line, kernels=("searchsorted_*",))
        sorter = unsorted.argsort()
        same(shipped, lambda b, x, s: torch.searchsorted(b, x, sorter=s), unsorted, x, sorter, kernels=("*_sorter",))
        same(shipped, lambda b, x: torch.searchsorted(b, x), line.float(), x, kernels=("searchsorted_float_*",))
    same(shipped, lambda b: torch.searchsorted(b, 2.5, right=right), line, kernels=("searchsorted_*",))
    same(shipped, lambda x, b: torch.bucketize(x, b), normal(dtype)((3000,)), line, kernels=("searchsorted_*",))


@pytest.mark.parametrize("dtype", [torch.int64, torch.int32], ids=str)
def test_repeated_indices(shipped: Shipped, dtype: torch.dtype) -> None:
    for repeats in (torch.tensor([1, 2, 0, 3], dtype=dtype), torch.arange(8, dtype=dtype)[::2]):
        name = f"repeat_interleave_int{32 if dtype == torch.int32 else 64}_t"
        same(shipped, torch.repeat_interleave, repeats, kernels=(name, "cumsum_*"))


@pytest.mark.filterwarnings("ignore:index_reduce")
@pytest.mark.parametrize("include_self", [True, False])
@pytest.mark.parametrize("dtype", [torch.float32, torch.int32], ids=str)
def test_means_of_what_meets(shipped: Shipped, dtype: torch.dtype, include_self: bool) -> None:
    x, source, index = normal(dtype)((5, 4)), normal(dtype, 2)((3, 4)), torch.tensor([4, 0, 4])
    spread = index[:, None].expand(3, 4).contiguous()

    def scattered(x: Tensor, index: Tensor, source: Tensor) -> Tensor:
        return x.scatter_reduce(0, index, source, "mean", include_self=include_self)

    def reduced(x: Tensor, index: Tensor, source: Tensor) -> Tensor:
        return x.index_reduce(0, index, source, "mean", include_self=include_self)

    same(shipped, scattered, x, spread, source, kernels=("scatter_add_*", "eq_*", "masked_fill_*", "div_*"))
    if shipped.release == "2.13.0":  # the counts are added up in MPSGraph there
        moved = on_device(index), on_device(source)
        assert shipped.reasons(lambda x: reduced(x, *moved), x) == {"MPSGraph"}
        return
    same(shipped, reduced, x, index, source, kernels=("index_reduce_mean_*", "index_add_*", "div_*"))


def test_index_add_of_int64_is_a_product_and_a_put_before_it_has_a_kernel(shipped: Shipped) -> None:
    x, source, index = normal(torch.int64)((5, 4)), normal(torch.int64, 2)((3, 4)), torch.tensor([4, 0, 4])
    kernels = ("index_add_long_long",) if shipped.release != "2.13.0" else ("index_put_accumulate_long", "mul_*")
    same(shipped, lambda x, i, s: x.index_add(0, i, s, alpha=3), x, index, source, kernels=kernels)


def test_a_bags_gradient_is_the_dense_one(shipped: Shipped) -> None:
    def gradient(weight: Tensor, indices: Tensor, offsets: Tensor) -> Tensor:
        weight = weight.clone().requires_grad_()
        torch.nn.functional.embedding_bag(indices, weight, offsets, mode="mean").sum().backward()
        assert weight.grad is not None
        return weight.grad

    weight, indices, offsets = normal(torch.float32)((6, 5)), torch.tensor([4, 0, 4, 2, 5]), torch.tensor([0, 3])
    same(shipped, gradient, weight, indices, offsets, kernels=("embedding_bag_backward_float_long",))
