"""Operators of two tensors by the shipped kernels: every overload, each form of kernel, mixed dtypes, numbers."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor

from mpsmith.simulator.shipped.conventions import binary
from support.shipped_kernels import LAYOUTS, Shipped, assert_near, normal, on_both, on_device, overload_of, positive

pytestmark = pytest.mark.network

float32, float16, bfloat16, int32, int64 = torch.float32, torch.float16, torch.bfloat16, torch.int32, torch.int64

# Operators of integers alone.
INTEGRAL = ("bitwise", "__", "gcd", "lcm")
# Operators whose kernels a release does not have: there they ran in MPSGraph.
LACKING = {
    "2.13.0": {
        *("heaviside", "log_sigmoid_backward", "logical_and", "logical_or", "logical_xor", "mish_backward", "pow"),
        *("sigmoid_backward", "special_laguerre_polynomial_l", "tanh_backward"),
    },
    "2.15.0": set(),
}
LOOSE = {"special_zeta": 20.0, "igamma": 20.0, "igammac": 20.0, "special_hermite_polynomial_h": 20.0}


COMPARISONS = ("eq", "ne", "lt", "le", "gt", "ge", "logical_and", "logical_or", "logical_xor")
# Of the release that the tests' device has the coverage of, these are no native operators.
FOREIGN = ("heaviside", "special_laguerre_polynomial_l")
PLANNED = sorted(name for name in binary.PLANNERS if not name.startswith((*FOREIGN, "isnan")))


def operator_of(overload: str) -> str:
    name = overload.partition(".")[0]
    return name if name.startswith("__") else name.removesuffix("_")


def case(overload: str) -> tuple[list[Any], dict[str, Any]]:
    """Arguments for an overload, the two operands unlike each other."""
    name = operator_of(overload)
    left, right = positive(float32, 1)((5, 7)), positive(float32, 2)((5, 7))
    if name.startswith(INTEGRAL):
        left, right = left.mul(5).int(), right.int()
    elif "polynomial" in name:
        right = torch.arange(7.0).expand(5, 7).contiguous()
    elif "backward" in name or name in ("maximum", "minimum", "fmax", "fmin", "copysign", *COMPARISONS):
        left, right = normal(float32, 1)((5, 7)), normal(float32, 2)((5, 7))
    of_number = ".Scalar" in overload and overload != "remainder.Scalar_Tensor" and name != "lerp"
    arguments: list[Any] = [left, 2 if of_number else right]
    if overload == "remainder.Scalar_Tensor":
        arguments = [5.5, right]
    if name == "lerp":
        arguments.append(0.3)
    if name == "log_sigmoid_backward":
        arguments.append(torch.exp(-right.abs()))  # the CPU's buffer, which kernels do not need
    return arguments, {"rounding_mode": "floor"} if "mode" in overload else {}


@pytest.mark.parametrize("overload", PLANNED)
def test_every_overload_takes_its_kernel(shipped: Shipped, overload: str) -> None:
    name = operator_of(overload)
    arguments, keywords = case(overload)
    dtype = arguments[0].dtype if isinstance(arguments[0], Tensor) else float32
    if name in COMPARISONS:
        dtype = torch.bool
    elif name in ("complex", "polar"):
        dtype = torch.complex64
    if name in LACKING[shipped.release]:
        if "out" not in overload and "grad_input" not in overload:
            reasons = shipped.reasons(lambda *moved: overload_of(overload)(*moved, **keywords), *arguments)
            assert reasons
            assert all(reason.startswith("no kernel ") for reason in reasons), reasons
        return
    actual, expected = on_both(shipped, overload, *arguments, dtype=dtype, **keywords)
    assert_near(actual, expected, LOOSE.get(name, 1.0))


# Which kernel two operands of a layout and a contiguous result ask for; 2.13.0 has none for long dense rows.
KINDS = {
    **dict.fromkeys(("contiguous", "offset", "no_dimension", "one_element"), "dense"),
    **dict.fromkeys(("transposed", "sliced", "stepped", "permuted", "expanded"), "strided"),
    "long_rows": "inner_contiguous",
}


def kind_of(layout: str, release: str) -> str:
    kind = KINDS[layout]
    return "strided" if kind == "inner_contiguous" and release == "2.13.0" else kind


def pair(layout: str, left: torch.dtype = float32, right: torch.dtype = float32) -> tuple[Tensor, Tensor, Tensor]:
    """Two operands of a layout, and an empty result that is contiguous."""
    operands = LAYOUTS[layout](normal(left, 1)), LAYOUTS[layout](normal(right, 2))
    return *operands, torch.empty(operands[0].shape, dtype=torch.result_type(*operands), device="mps")


@pytest.mark.parametrize("layout", sorted(LAYOUTS))
def test_every_layout(shipped: Shipped, layout: str) -> None:
    left, right, out = pair(layout)
    kernels = [] if layout == "empty" else [f"sub_{kind_of(layout, shipped.release)}_float_float"]
    assert_near(shipped.run(torch.sub, left, right, out=out, kernels=kernels), left - right)


@pytest.mark.parametrize("layout", sorted(KINDS))
def test_every_layout_of_operands_that_differ_in_type(shipped: Shipped, layout: str) -> None:
    left, right, out = pair(layout, int64, float32)
    kernel = f"sub_{kind_of(layout, shipped.release).replace('inner_contiguous', 'strided')}_cast_float_float"
    assert_near(shipped.run(torch.sub, left, right, out=out, kernels=[kernel]), left - right)


@pytest.mark.parametrize("layout", sorted(KINDS))
def test_every_layout_with_alpha(shipped: Shipped, layout: str) -> None:
    left, right, out = pair(layout)
    kernel = f"add_alpha_{kind_of(layout, shipped.release).replace('inner_contiguous', 'strided')}_float_float_float"
    actual = shipped.run(torch.add, left, right, alpha=2.5, out=out, kernels=[kernel])
    assert_near(actual, torch.add(left, right, alpha=2.5))
    mixed, out = right.to(float16), out.clone()
    actual = shipped.run(torch.add, left, mixed, alpha=3, out=out, kernels=["add_alpha_*_cast_*"])
    assert_near(actual, torch.add(left, mixed, alpha=3))


@pytest.mark.parametrize("layout", sorted(KINDS))
@pytest.mark.parametrize("dtype", [int32, float32, torch.uint8], ids=str)
def test_a_comparison_into_another_dtype_converts(shipped: Shipped, layout: str, dtype: torch.dtype) -> None:
    left, right, _ = pair(layout)
    out = torch.empty(left.shape, dtype=dtype, device="mps")
    actual = shipped.run(torch.lt, left, right, out=out, kernels=["lt_strided_castout_bool_float"])
    assert_near(actual, (left < right).to(dtype))


def test_comparing_operands_that_differ_in_type_reads_them_in_their_common_one(shipped: Shipped) -> None:
    left, right = normal(torch.int32, 1)((4, 5)), normal(float32, 2)((4, 5))
    assert_near(shipped.run(torch.ge, left, right, kernels=["ge_dense_cast_bool_float"]), left >= right)


@pytest.mark.parametrize("size", [2**18 - 1, 2**18, 2**18 + 3])
def test_large_dense_operands_take_four_elements_a_thread(shipped: Shipped, size: int) -> None:
    left, right = normal(float32, 1)((size,)), normal(float32, 2)((size,))
    kernel = "sub_dense_ilp4_float_float" if size >= 2**18 else "sub_dense_float_float"
    assert_near(shipped.run(torch.sub, left, right, kernels=[kernel]), left - right)


# Operands of which one is repeated over the result: shapes, and the kernel's form.
REPEATED = [
    ((3, 4), (), "dense_scalar"),
    ((), (3, 4), "dense_scalar_lhs"),
    ((3, 4), (1, 1), "dense_scalar"),
    ((3, 4), (4,), "dense_broadcast"),
    ((4,), (3, 4), "dense_broadcast_rhs"),
    ((2, 3, 4), (1, 3, 4), "dense_broadcast"),
    ((3, 4), (3, 1), "strided"),
    ((3, 1), (1, 4), "strided"),
]


@pytest.mark.parametrize(("left_shape", "right_shape", "form"), REPEATED, ids=str)
def test_an_operand_that_is_repeated(
    shipped: Shipped, left_shape: tuple[int, ...], right_shape: tuple[int, ...], form: str
) -> None:
    left, right = normal(float32, 1)(left_shape), normal(float32, 2)(right_shape)
    assert_near(shipped.run(torch.sub, left, right, kernels=[f"sub_{form}_float_float"]), left - right)
    half = right.to(float16)
    kernel = f"sub_{form}_cast_float_float"
    assert_near(
        shipped.run(torch.sub, left, half, kernels=["sub_*"] if not (left_shape and right_shape) else [kernel]),
        left - half,
    )
    alpha = shipped.run(torch.sub, left, right, alpha=2, kernels=["*_alpha_*_float_float_float"])
    assert_near(alpha, torch.sub(left, right, alpha=2))


@pytest.mark.parametrize("dtype", [float32, float16, bfloat16, int64, torch.bool], ids=str)
@pytest.mark.parametrize("number", [3, 2.5, True])
@pytest.mark.parametrize("on_left", [False, True])
def test_a_number_is_an_operand(shipped: Shipped, dtype: torch.dtype, number: Any, on_left: bool) -> None:
    x = normal(dtype, 1)((3, 5))
    if on_left:
        assert_near(shipped.run(lambda moved: number * moved, x, kernels=["mul_*"]), number * x)
    else:
        assert_near(shipped.run(lambda moved: torch.gt(moved, number), x, kernels=["gt_*"]), torch.gt(x, number))


def test_a_scalar_of_the_host_is_an_operand(shipped: Shipped) -> None:
    x = normal(float32, 1)((3, 5))
    for scalar in (torch.tensor(2.5, dtype=torch.float64), torch.tensor(3), torch.tensor(1.5)):

        def minus(moved: Tensor, scalar: Tensor = scalar) -> Tensor:
            return moved - scalar

        assert_near(shipped.run(minus, x, kernels=["sub_dense_scalar_float_float"]), x - scalar)


@pytest.mark.parametrize("layout", sorted(KINDS.keys() - {"expanded"}))
def test_it_computes_in_place(shipped: Shipped, layout: str) -> None:
    left, right, _ = pair(layout)
    moved, other = on_device(left), on_device(right)
    shipped.run(moved.sub_, other, kernels=["sub_*"])
    assert_near(moved, left.clone().sub_(right))
    shipped.run(moved.mul_, moved, kernels=["mul_*"])
    assert_near(moved, left.clone().sub_(right).square_())


@pytest.mark.parametrize("mode", [None, "trunc", "floor"])
@pytest.mark.parametrize("dtype", [float32, int32], ids=str)
def test_division_has_three_modes(shipped: Shipped, mode: str | None, dtype: torch.dtype) -> None:
    left, right = normal(dtype, 1, scale=9.0)((4, 5)), positive(float32, 2)((4, 5)).add(1).to(dtype)
    kernel = f"div_{mode or 'true'}_*"
    actual = shipped.run(torch.div, left, right, rounding_mode=mode, kernels=[kernel])
    assert_near(actual, torch.div(left, right, rounding_mode=mode))


def test_extrema_of_integers_take_the_kernels_of_maximum_and_minimum(shipped: Shipped) -> None:
    left, right = normal(int32, 1)((4, 5)), normal(int32, 2)((4, 5))
    assert_near(shipped.run(torch.fmax, left, right, kernels=["maximum_*"]), torch.fmax(left, right))
    assert_near(shipped.run(torch.fmin, left, right, kernels=["minimum_*"]), torch.fmin(left, right))


def test_complex_numbers(shipped: Shipped) -> None:
    left, right = normal(torch.complex64, 1)((4, 5)), normal(torch.complex64, 2)((4, 5)).t().contiguous().t()
    assert_near(shipped.run(torch.mul, left, right, kernels=["mul_strided_float2_float2"]), left * right)
    actual = shipped.run(torch.sub, left, right, alpha=1 + 2j, kernels=["*_alpha_strided_float2_float2_float2"])
    assert_near(actual, torch.sub(left, right, alpha=1 + 2j))
