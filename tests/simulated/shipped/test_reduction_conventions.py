"""Reductions by the shipped kernels: every overload, layout, dtype, dimension, and lengths that take several passes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

from support.shipped_kernels import LAYOUTS, Shipped, assert_near, normal, on_both

pytestmark = pytest.mark.network

# Overload -> its arguments after the tensor; what runs in MPSGraph in 2.13.0.
ALONG: dict[str, tuple[Any, ...]] = {
    **dict.fromkeys(("sum.dim_IntList", "sum.IntList_out", "mean.dim", "mean.out", "nansum", "nansum.out"), ([1],)),
    **dict.fromkeys(("amin", "amin.out", "amax", "amax.out", "count_nonzero.dim_IntList"), ([1],)),
    **dict.fromkeys(("all.dim", "all.out", "any.dim", "any.out", "argmax", "argmax.out", "argmin", "argmin.out"), (1,)),
    **dict.fromkeys(("all", "all.all_out", "any", "any.all_out"), ()),
    **dict.fromkeys(("linalg_vector_norm", "linalg_vector_norm.out", "norm.ScalarOpt_dim", "norm.out"), (2, [1])),
    "trace": (),
}
LATER: dict[str, tuple[Any, ...]] = {
    **dict.fromkeys(("prod", "min", "max"), ()),
    **dict.fromkeys(("prod.dim_int", "prod.int_out", "min.dim", "min.dim_min", "max.dim", "max.dim_max"), (1,)),
    **dict.fromkeys(("var.correction", "std.correction"), ([1],)),
}
OUT_DTYPE = {"all": torch.bool, "any": torch.bool, "argmax": torch.int64, "argmin": torch.int64}


@pytest.mark.parametrize("overload", sorted(ALONG))
def test_every_overload(shipped: Shipped, overload: str) -> None:
    dtype = OUT_DTYPE.get(overload.partition(".")[0], torch.float32)
    actual, expected = on_both(shipped, overload, normal(torch.float32)((6, 50)), *ALONG[overload], dtype=dtype)
    assert_near(actual, expected)


@pytest.mark.parametrize("overload", sorted(LATER))
def test_every_overload_that_later_releases_have_kernels_of(shipped: Shipped, overload: str) -> None:
    x, arguments = normal(torch.float32)((6, 50)), LATER[overload]
    name, _, variant = overload.partition(".")
    if shipped.release == "2.13.0":
        function = getattr(getattr(torch.ops.aten, name), variant or "default")
        if "out" not in variant and variant not in ("dim_min", "dim_max"):
            assert shipped.reasons(lambda moved: function(moved, *arguments), x) == {"MPSGraph"}
        return
    if variant in ("dim_min", "dim_max"):
        return
    actual, expected = on_both(shipped, overload, x, *arguments)
    for one, other in zip(_all(actual), _all(expected), strict=True):
        assert_near(one, other)


def _all(result: Any) -> list[Tensor]:
    return [result] if isinstance(result, Tensor) else list(result)


DTYPES = (
    *(torch.float32, torch.float16, torch.bfloat16, torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8),
    *(torch.bool, torch.complex64),
)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_every_dtype(shipped: Shipped, dtype: torch.dtype) -> None:
    x = normal(dtype)((6, 50))
    for dims in ([0], [1], [0, 1]):
        assert_near(shipped.run(torch.sum, x, dims), torch.sum(x, dims), scale=10)
        assert_near(shipped.run(torch.count_nonzero, x, dims), torch.count_nonzero(x, dims))
    assert_near(shipped.run(torch.all, x, 1), torch.all(x, 1))
    if not dtype.is_complex:
        assert_near(shipped.run(torch.amax, x, [0]), torch.amax(x, [0]))
        if dtype != torch.bool:
            assert_near(shipped.run(torch.argmin, x, 1), torch.argmin(x, 1))


@pytest.mark.parametrize("layout", sorted(LAYOUTS.keys() - {"empty"}))
def test_every_layout_along_every_dimension(shipped: Shipped, layout: str) -> None:
    x = LAYOUTS[layout](normal(torch.float32))
    for dim in [[], *([d] for d in range(x.dim()))]:
        for keepdim in (False, True):
            expected = torch.sum(x, dim, keepdim=keepdim)
            assert_near(shipped.run(torch.sum, x, dim, keepdim=keepdim), expected)
            expected = torch.linalg.vector_norm(x, 1, dim or None, keepdim=keepdim)
            assert_near(shipped.run(torch.linalg.vector_norm, x, 1, dim or None, keepdim=keepdim), expected)


# Long reductions: the view of 80,000 elements that is reduced, along which dimension.
LONG: dict[str, tuple[Callable[[Tensor], Tensor], int | None]] = {
    "everything": (lambda x: x, None),
    "everything_strided": (lambda x: x[::2], None),
    "prime": (lambda x: x[:10007], None),
    "few_rows": (lambda x: x.view(8, 10000), 1),
    "many_rows": (lambda x: x.view(8000, 10), 1),
    "few_columns": (lambda x: x.view(10000, 8), 0),
    "more_columns": (lambda x: x.view(2000, 40), 0),
    "many_columns": (lambda x: x.view(20, 4000), 0),
    "the_middle": (lambda x: x.view(20, 40, 100), 1),
    "transposed": (lambda x: x.view(40, 2000).t(), 1),
}


@pytest.mark.parametrize("shape", sorted(LONG))
def test_long_reductions(shipped: Shipped, shape: str) -> None:
    view, dim = LONG[shape]
    x = view(normal(torch.int64)((80000,)))
    dims = [] if dim is None else [dim]
    assert_near(shipped.run(torch.sum, x, dims), torch.sum(x, dims))
    assert_near(shipped.run(torch.amin, x, dims), torch.amin(x, dims))
    x = view(normal(torch.float32)((80000,)))
    assert_near(shipped.run(torch.mean, x, dims), torch.mean(x, dims))
    assert_near(shipped.run(torch.argmax, x, dim), torch.argmax(x, dim))
    expected = torch.linalg.vector_norm(x, 2, dims or None)
    assert_near(shipped.run(torch.linalg.vector_norm, x, 2, dims or None), expected)
    if shipped.release != "2.13.0":
        assert_near(shipped.run(torch.var, x, dims or None), torch.var(x, dims or None))


@pytest.mark.parametrize("order", [0, 1, 2, 3, -1, float("inf"), -float("inf")])
def test_every_order_of_a_norm(shipped: Shipped, order: float) -> None:
    x = normal(torch.float32)((6, 50))
    if shipped.release != "2.13.0" and order in (3, -1):
        return  # those are no reductions there
    expected = torch.linalg.vector_norm(x, order, 0)
    assert_near(shipped.run(torch.linalg.vector_norm, x, order, 0), expected)


def test_nan_is_the_greatest_and_the_least(shipped: Shipped) -> None:
    x = torch.tensor([[1.0, float("nan"), 3.0], [4.0, 5.0, -float("inf")]])
    for function in (torch.amax, torch.amin, torch.argmax, torch.argmin, torch.nansum):
        assert_near(shipped.run(function, x, 1), function(x, 1))


def test_other_dtypes_are_converted_first(shipped: Shipped) -> None:
    x = normal(torch.float16)((6, 50))
    actual = shipped.run(torch.sum, x, 1, dtype=torch.int32, kernels=["copy_identity_*", "sum_reduction_*_int_int"])
    assert_near(actual, torch.sum(x, 1, dtype=torch.int32))
    one = torch.tensor([3], dtype=torch.uint8)
    assert_near(shipped.run(torch.any, one, 0), torch.any(one, 0))


def test_results_of_another_stride(shipped: Shipped) -> None:
    x, out = normal(torch.float32)((6, 50)), torch.zeros(100, device="mps")
    shipped.run(torch.sum, x, 0, out=out[::2])
    assert_near(out[::2].contiguous(), torch.sum(x, 0))
    assert out[1::2].cpu().eq(0).all()
