"""Operators of one tensor by the shipped kernels: every overload, every layout, results of other dtypes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from mpsmith.simulator.shipped.conventions import unary
from support.shipped_kernels import (
    LAYOUTS,
    Shipped,
    Values,
    assert_near,
    inside,
    library_of,
    normal,
    on_both,
    on_device,
    overload_of,
    positive,
)

from ..conftest import FreshPython

pytestmark = pytest.mark.network

# Where the operator is defined; elsewhere any number does.
DOMAINS: dict[str, Callable[[torch.dtype], Values]] = {
    **dict.fromkeys(("acos", "asin", "erfinv"), inside),
    **dict.fromkeys(("digamma", "lgamma", "log", "log10", "log1p", "log2", "rsqrt", "sqrt", "polygamma"), positive),
    **dict.fromkeys((name.partition(".")[0] for name in unary.PLANNERS if "bessel" in name), positive),
    "special_entr": positive,
}
# Operators whose kernels a release does not have: there they ran in MPSGraph, or by other kernels.
LACKING = {
    "2.13.0": {"ceil", "floor", "isneginf", "isposinf", "log_sigmoid_forward", "logical_not", "mish", "trunc"},
    "2.15.0": {"relu"},
}
LOOSE = {"special_erfcx": 20.0, "tan": 10.0, "polygamma": 20.0, "special_bessel_y0": 10.0}


def operator_of(overload: str) -> str:
    return overload.partition(".")[0].removesuffix("_")


@pytest.mark.parametrize("overload", sorted(unary.PLANNERS.keys() - {"frexp.Tensor_out"}))
def test_every_overload_takes_its_kernel(shipped: Shipped, overload: str) -> None:
    name = operator_of(overload)
    dtype = torch.int32 if name == "bitwise_not" else torch.float32
    arguments: list[Any] = [DOMAINS.get(name, normal)(dtype)((5, 7))]
    if name == "polygamma":
        arguments.insert(0, 2)
    keywords = {"decimals": 1} if "decimals" in overload else {}
    if name in LACKING[shipped.release]:
        if not overload.endswith("out") and "output" not in overload:
            reasons = shipped.reasons(lambda *moved: overload_of(overload)(*moved, **keywords), *arguments)
            assert reasons
            assert all(reason.startswith("no kernel ") for reason in reasons), reasons
        return
    dtype = torch.bool if name in ("isposinf", "isneginf", "logical_not") else dtype
    actual, expected = on_both(shipped, overload, *arguments, dtype=dtype, **keywords)
    if name == "log_sigmoid_forward":
        actual, expected = actual[0], expected[0]
    assert_near(actual, expected, LOOSE.get(name, 1.0))


# Which kernel each layout asks for; 2.13.0 has none for long dense rows.
KINDS = {
    **dict.fromkeys(("contiguous", "transposed", "offset", "no_dimension", "one_element"), "dense_scalar"),
    **dict.fromkeys(("sliced", "stepped", "permuted", "expanded"), "strided"),
    "long_rows": "inner_contiguous",
}


def kind_of(layout: str, release: str) -> str:
    kind = KINDS[layout]
    return "strided" if kind == "inner_contiguous" and release == "2.13.0" else kind


@pytest.mark.parametrize("layout", sorted(LAYOUTS))
@pytest.mark.parametrize("dtype", [torch.float32, torch.int64, torch.complex64], ids=str)
def test_every_layout(shipped: Shipped, layout: str, dtype: torch.dtype) -> None:
    x = LAYOUTS[layout](normal(dtype))
    out = torch.empty(x.shape, dtype=torch.exp(x).dtype, device="mps")  # contiguous, whatever x is
    if layout == "empty":
        assert_near(shipped.run(torch.exp, x), torch.exp(x))
        return
    dense_twin = "strided" if layout == "transposed" else kind_of(layout, shipped.release)
    assert_near(shipped.run(torch.exp, x, out=out, kernels=[f"exp_{dense_twin}_*"]), torch.exp(x))


@pytest.mark.parametrize("layout", sorted(KINDS))
def test_a_result_keeps_the_order_of_its_operand(shipped: Shipped, layout: str) -> None:
    x = LAYOUTS[layout](normal(torch.float32))
    actual = shipped.run(torch.sin, x, kernels=["sin_*"])
    assert_near(actual, torch.sin(x))
    assert actual.stride() == torch.sin(x).stride()


@pytest.mark.parametrize("layout", sorted(KINDS))
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=str)
def test_a_result_of_another_dtype_is_converted_as_it_is_stored(
    shipped: Shipped, layout: str, dtype: torch.dtype
) -> None:
    x = LAYOUTS[layout](normal(torch.float32))
    dense = "strided" if layout == "transposed" else kind_of(layout, shipped.release).removesuffix("_scalar")
    out = torch.empty(x.shape, dtype=dtype, device="mps")
    actual = shipped.run(torch.exp, x, out=out, kernels=[f"exp_{dense}_castout_float"])
    assert_near(actual, torch.exp(x).to(dtype))


@pytest.mark.parametrize("layout", sorted(KINDS))
def test_it_computes_in_place(shipped: Shipped, layout: str) -> None:
    if layout == "expanded":
        return
    x = LAYOUTS[layout](normal(torch.float32))
    moved = on_device(x)
    shipped.run(moved.exp_, kernels=["exp_*"])
    assert_near(moved, x.clone().exp_())
    everything = torch.empty(0).set_(moved.cpu().untyped_storage()) if layout == "contiguous" else None
    assert everything is None or everything.numel() == x.numel()


@pytest.mark.parametrize("size", [2**18 - 1, 2**18, 2**18 + 3])
def test_large_dense_tensors_take_four_elements_a_thread(shipped: Shipped, size: int) -> None:
    x = normal(torch.float32)((size,))
    kernel = "neg_dense_float_float" if size >= 2**18 else "neg_dense_scalar_float_float"
    assert_near(shipped.run(torch.neg, x, kernels=[kernel]), -x)
    integers = x.int()
    assert_near(shipped.run(torch.neg, integers, kernels=["neg_dense_scalar_int_int"]), -integers)


@pytest.mark.parametrize("dtype", [torch.int8, torch.uint8, torch.int16, torch.int32, torch.int64, torch.bool], ids=str)
def test_integers_give_floats(shipped: Shipped, dtype: torch.dtype) -> None:
    x = normal(dtype)((4, 9))
    assert_near(shipped.run(torch.sigmoid, x, kernels=["sigmoid_dense_scalar_float_*"]), torch.sigmoid(x))


@pytest.mark.parametrize("layout", ["contiguous", "transposed", "stepped"])
@pytest.mark.parametrize("name", ["abs", "angle"])
def test_real_numbers_of_complex_ones(shipped: Shipped, name: str, layout: str) -> None:
    z = LAYOUTS[layout](normal(torch.complex64))
    kernels = [f"{name}_*_float2_float2", "copy_identity_strided_float_float"]
    assert_near(shipped.run(getattr(torch, name), z, kernels=kernels), getattr(torch, name)(z))


def test_rounding_integers_copies_them(shipped: Shipped) -> None:
    integers = normal(torch.int32)((4, 5)).t()
    assert_near(shipped.run(torch.floor, integers), integers)
    assert not shipped.reasons(torch.ceil, integers)


@pytest.mark.parametrize("approximate", ["none", "tanh"])
def test_gelu_has_two_kernels(shipped: Shipped, approximate: str) -> None:
    x = normal(torch.float32)((4, 5))
    kernel = "gelu_tanh_dense*" if approximate == "tanh" else "gelu_dense*"
    actual = shipped.run(torch.nn.functional.gelu, x, approximate=approximate, kernels=[kernel])
    assert_near(actual, torch.nn.functional.gelu(x, approximate=approximate))


def test_polygamma_of_low_order_has_kernels_of_its_own(shipped: Shipped) -> None:
    x = positive(torch.float32)((4, 5))
    for order, kernel in enumerate(("digamma_*", "trigamma_*", "polygamma_*", "polygamma_*")):
        assert_near(shipped.run(torch.polygamma, order, x, kernels=[kernel]), torch.polygamma(order, x), 20)


def test_a_dtype_without_a_kernel_is_declined(shipped: Shipped) -> None:
    assert shipped.reasons(torch.neg, torch.zeros(3, dtype=torch.complex32)) <= {"no kernel neg_dense_castout_half2"}


# A release's operators that the tests' device, which has the coverage of the installed torch, does not have.
FOREIGN = """
import sys
import torch
from mpsmith.audit.releases.surface.profiles import coverage_profile
from mpsmith.simulator.device import loading as device

device.load(coverage_profile("2.15.0"))
from support.shipped_kernels import assert_near, normal, shipped_kernels

x = normal(torch.float32, scale=100.0)((4, 6, 8))
with shipped_kernels("2.15.0") as shipped:
    for source in (x, x.transpose(0, 2), torch.stack([x, x], -1).flatten(-2)[..., ::2]):
        dense = torch.empty_like(source, memory_format=torch.contiguous_format)
        out = dense.to("mps"), dense.int().to("mps")
        for actual, expected in zip(shipped.run(torch.frexp, source, out=out), torch.frexp(source)):
            assert_near(actual, expected)
        other = normal(torch.float32, 1)(tuple(source.shape)).ceil()
        actual = shipped.run(torch.heaviside, other, source, kernels=["heaviside_*"])
        assert_near(actual, torch.heaviside(other, source))
        degree = torch.arange(source.shape[-1]).to(torch.float32)
        polynomial, within = torch.special.laguerre_polynomial_l, source.tanh()
        actual = shipped.run(polynomial, within, degree, kernels=["laguerre_*"])
        assert_near(actual, polynomial(within, degree), 100)
"""


def test_operators_that_came_with_a_later_release(fresh_python: FreshPython) -> None:
    library_of("2.15.0")
    fresh_python(FOREIGN, PYTHONPATH=str(Path(__file__).parents[2]))
