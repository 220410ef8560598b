"""Elementwise operators with parameters, of three tensors, and fills by the shipped kernels."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

from mpsmith.simulator.shipped.conventions import fills, parameters, ternary
from support.shipped_kernels import LAYOUTS, Shipped, assert_near, normal, on_both, on_device, overload_of, positive

pytestmark = pytest.mark.network

float32, float16, bfloat16, int32 = torch.float32, torch.float16, torch.bfloat16, torch.int32

x, y, z = normal(float32, 1)((5, 7)), normal(float32, 2)((5, 7)), positive(float32, 3)((5, 7))
mask = normal(torch.bool, 4)((5, 7))

# Overload -> its arguments. An out= or in-place overload has those of its functional one.
ARGUMENTS: dict[str, tuple[Any, ...]] = {
    "hardshrink": (x, 0.7),
    "softshrink": (x, 0.7),
    "leaky_relu": (x, 0.3),
    "hardshrink_backward": (y, x, 0.7),
    "softshrink_backward": (y, x, 0.7),
    "leaky_relu_backward": (y, x, 0.3, False),
    "logit_backward": (y, z.reciprocal() / 2, 0.1),
    "elu": (x, 1.5, 0.8, 0.6),
    "elu_backward": (y, 1.5, 0.8, 0.6, False, x),
    "softplus": (x, 1.5, 2.0),
    "softplus_backward": (y, x, 1.5, 2.0),
    "clamp": (x, -0.5, 0.8),
    "clamp_min": (x, -0.5),
    "clamp_max": (x, 0.8),
    "hardtanh": (x, -0.5, 0.8),
    "relu": (x,),
    "pow.Tensor_Scalar": (z, 2.5),
    "pow.Scalar": (2.5, x),
    "nan_to_num": (x / x.ceil(), 1.0, 2.0, -3.0),
    "clamp.Tensor": (x, y - 1, y + 1),
    "clamp_min.Tensor": (x, y),
    "clamp_max.Tensor": (x, y),
    "lerp.Tensor": (x, y, z),
    "addcmul": (x, y, z),
    "addcdiv": (x, y, z),
    "where.self": (mask, x, y),
    "fill.Scalar": (x, 2.5),
    "fill.Tensor": (x, torch.tensor(2.5)),
    "zero": (x,),
    "masked_fill.Scalar": (x, mask, 2.5),
    "masked_fill.Tensor": (x, mask, torch.tensor(2.5)),
}
KEYWORDS: dict[str, dict[str, Any]] = {"addcmul": {"value": 0.7}, "addcdiv": {"value": 0.7}}
LACKING = {
    "2.13.0": {
        "addcdiv",
        "addcmul",
        "logit_backward",
        "nan_to_num",
        "pow.Scalar",
        "softplus",
        "softplus_backward",
        "where.self",
    },
    "2.15.0": set(),
}
PLANNED = sorted(parameters.PLANNERS.keys() | ternary.PLANNERS.keys() | fills.PLANNERS.keys())


def functional(overload: str) -> str:
    name, _, variant = overload.partition(".")
    name = name.removesuffix("_")
    variant = variant.removesuffix("grad_input").removesuffix("out").removesuffix("_")
    if name == "pow" and not overload.endswith(("Tensor_Scalar", "Tensor_Scalar_out")) and overload.startswith("pow_"):
        variant = "Tensor_Scalar"
    return f"{name}.{variant}" if variant else name


@pytest.mark.parametrize("overload", PLANNED)
def test_every_overload_takes_its_kernel(shipped: Shipped, overload: str) -> None:
    plain = functional(overload)
    arguments, keywords = ARGUMENTS[plain], KEYWORDS.get(plain, {})
    if plain in LACKING[shipped.release]:
        if "out" not in overload and "grad_input" not in overload:
            reasons = shipped.reasons(lambda *moved: overload_of(overload)(*moved, **keywords), *arguments)
            assert reasons
            assert all(reason.startswith("no kernel ") for reason in reasons), reasons
        return
    if plain == "zero":
        assert_near(shipped.run(overload_of(overload), x), torch.zeros_like(x))
        return
    actual, expected = on_both(shipped, overload, *arguments, **keywords)
    assert_near(actual, expected)


Elementwise = Callable[..., Tensor]
ALL_LAYOUTS = pytest.mark.parametrize("layout", sorted(LAYOUTS.keys() - {"empty"}))


def of_layout(layout: str, *dtypes: torch.dtype) -> list[Tensor]:
    """Tensors of a layout, unlike each other."""
    return [LAYOUTS[layout](normal(dtype, seed)) for seed, dtype in enumerate(dtypes)]


def contiguous(like: Tensor) -> Tensor:
    """A contiguous tensor of the device for a result."""
    return torch.empty(like.shape, dtype=like.dtype, device="mps")


@ALL_LAYOUTS
def test_a_parameter_in_every_layout(shipped: Shipped, layout: str) -> None:
    (source,) = of_layout(layout, float32)
    expected = torch.clamp(source, -0.5, 0.8)
    assert_near(
        shipped.run(torch.clamp, source, -0.5, 0.8, out=contiguous(source), kernels=["clamp_scalar_*"]), expected
    )
    softened = torch.ops.aten.hardshrink.out(source, 0.4, out=torch.empty_like(source))
    actual = shipped.run(torch.ops.aten.hardshrink.out, source, 0.4, out=contiguous(source), kernels=["hardshrink_*"])
    assert_near(actual, softened)


@pytest.mark.parametrize("size", [2**18 - 1, 2**18, 2**18 + 3])
def test_large_dense_tensors_with_a_parameter(shipped: Shipped, size: int) -> None:
    source = normal(float32)((size,))
    ilp = size >= 2**18 and shipped.release == "2.15.0"
    kernel = "hardshrink_dense_ilp_*" if ilp else "hardshrink_dense_float_*"
    hardshrink = torch.nn.functional.hardshrink
    assert_near(shipped.run(hardshrink, source, 0.4, kernels=[kernel]), hardshrink(source, 0.4))


@ALL_LAYOUTS
def test_three_operands_in_every_layout(shipped: Shipped, layout: str) -> None:
    source, low, high = of_layout(layout, float32, float32, float32)
    low, high = low - 1, high + 1
    expected = torch.clamp(source, low, high)
    assert_near(shipped.run(torch.clamp, source, low, high, out=contiguous(source), kernels=["clamp_*"]), expected)
    if shipped.release == "2.15.0":
        first, second, third = of_layout(layout, float32, float32, float32)
        actual = shipped.run(
            torch.addcmul, first, second, third, value=0.7, out=contiguous(first), kernels=["addcmul_*"]
        )
        assert_near(actual, torch.addcmul(first, second, third, value=0.7))


@ALL_LAYOUTS
def test_three_operands_of_other_dtypes(shipped: Shipped, layout: str) -> None:
    if layout in ("no_dimension",):
        return
    source, low, high = of_layout(layout, float32, float16, int32)
    expected = torch.clamp(source, low, high)
    kernels = ["clamp_*_cast_float"]
    assert_near(shipped.run(torch.clamp, source, low, high, out=contiguous(expected), kernels=kernels), expected)


@ALL_LAYOUTS
def test_where_in_every_layout(shipped: Shipped, layout: str) -> None:
    if shipped.release == "2.13.0":
        return
    condition, left, right = of_layout(layout, torch.bool, float32, float32)
    actual = shipped.run(torch.where, condition, left, right, out=contiguous(left), kernels=["where_*_float_bool"])
    assert_near(actual, torch.where(condition, left, right))
    half = right.to(float16)
    actual = shipped.run(torch.where, condition, left, half, kernels=["where_*"])
    assert_near(actual, torch.where(condition, left, half))
    assert_near(shipped.run(torch.where, condition, left, 2.5), torch.where(condition, left, 2.5))


@pytest.mark.parametrize("dtype", [float16, bfloat16, int32, torch.complex64], ids=str)
def test_products_of_other_dtypes(shipped: Shipped, dtype: torch.dtype) -> None:
    if shipped.release == "2.13.0":
        return
    first, second, third = of_layout("transposed", dtype, dtype, dtype)
    actual = shipped.run(torch.addcmul, first, second, third, value=2, kernels=["addcmul_dense_*"])
    assert_near(actual, torch.addcmul(first, second, third, value=2))


@ALL_LAYOUTS
@pytest.mark.parametrize("dtype", [torch.bool, float16, float32, torch.complex64, torch.int64], ids=str)
def test_fills_in_every_layout(shipped: Shipped, layout: str, dtype: torch.dtype) -> None:
    if layout == "expanded":
        return
    (target,) = of_layout(layout, dtype)
    moved = on_device(target)
    shipped.run(moved.fill_, 3, kernels=["fill_scalar_*"])
    assert_near(moved, target.clone().fill_(3))
    holes = LAYOUTS[layout](normal(torch.bool, 9))
    moved = on_device(target)
    shipped.run(moved.masked_fill_, holes, 3, kernels=["masked_fill_scalar_*"])
    assert_near(moved, target.clone().masked_fill_(holes, 3))


@pytest.mark.parametrize(("shape", "form"), [((5, 7), "dense"), ((7,), "broadcast"), ((5, 1), "strided")], ids=str)
def test_a_mask_that_is_repeated(shipped: Shipped, shape: tuple[int, ...], form: str) -> None:
    holes = normal(torch.bool, 9)(shape)
    moved = on_device(x)
    shipped.run(moved.masked_fill_, holes, 2.5, kernels=[f"masked_fill_scalar_{form}_32bit"])
    assert_near(moved, x.clone().masked_fill_(holes, 2.5))


POWERS = {
    0: "fill_scalar_*",
    1: "*",
    2: "sqr_*",
    -1: "reciprocal_*",
    -0.5: "rsqrt_*",
    0.5: "sqrt_*",
    3: "pow_scalar_*",
    2.5: "pow_scalar_*",
    1 + 2j: "pow_scalar_dense_float2_float2_float2",
}


@pytest.mark.parametrize("exponent", POWERS, ids=str)
def test_powers_of_which_some_have_kernels_of_their_own(shipped: Shipped, exponent: complex) -> None:
    if exponent == 1:
        assert not shipped.reasons(torch.pow, z, 1)
        return
    assert_near(shipped.run(torch.pow, z, exponent, kernels=[POWERS[exponent]]), torch.pow(z, exponent))


def test_integers_to_the_power_of_a_float_are_converted_first(shipped: Shipped) -> None:
    integers = z.mul(3).int()
    kernels = ["copy_identity_dense_castout_int", "pow_scalar_dense_float_float_float"]
    assert_near(shipped.run(torch.pow, integers, 2.5, kernels=kernels), torch.pow(integers, 2.5))
    assert_near(shipped.run(torch.pow, integers, 3, kernels=["pow_scalar_dense_int_int_int"]), integers**3)


def test_clamping_integers_to_floats_converts_them_first(shipped: Shipped) -> None:
    integers = normal(int32, 1, scale=5.0)((4, 5))
    kernels = ["copy_identity_dense_castout_int", "clamp_min_scalar_dense_float_float_float"]
    assert_near(shipped.run(torch.clamp, integers, 1.5, kernels=kernels), torch.clamp(integers, 1.5))


def test_a_nan_bound_fills(shipped: Shipped) -> None:
    assert_near(
        shipped.run(torch.clamp, x, float("nan"), 1.0, kernels=["fill_scalar_*"]), torch.clamp(x, float("nan"), 1.0)
    )


@pytest.mark.parametrize("dtype", [float16, bfloat16], ids=str)
def test_nan_to_num_of_reduced_types(shipped: Shipped, dtype: torch.dtype) -> None:
    if shipped.release == "2.13.0":
        return
    values = torch.tensor([float("nan"), float("inf"), -float("inf"), 1.0], dtype=dtype)
    assert_near(shipped.run(torch.nan_to_num, values, kernels=["nan_to_num_*"]), torch.nan_to_num(values))


def test_not_a_number_differs_from_itself(shipped: Shipped) -> None:
    values = torch.tensor([[1.0, float("nan")], [float("inf"), -0.0]])
    assert_near(shipped.run(torch.isnan, values, kernels=["ne_dense_bool_float"]), torch.isnan(values))
    assert_near(shipped.run(torch.isnan, values.t()[:, :1], kernels=["ne_*"]), torch.isnan(values.t()[:, :1]))


def test_a_bound_below_an_unsigned_type_wraps_around(shipped: Shipped) -> None:
    values = torch.arange(10, dtype=torch.uint8)
    assert_near(shipped.run(torch.clamp, values, -250, 8, kernels=["clamp_scalar_*"]), torch.clamp(values, -250, 8))
