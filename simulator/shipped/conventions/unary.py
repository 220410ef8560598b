"""Elementwise operators of one tensor: which kernel each overload takes.

Source: UnaryKernel.mm, ActivationKernel.mm, Gamma.mm and TensorCompare.mm of aten/src/ATen/native/mps/operations and
aten/src/ATen/native/UnaryOps.cpp (main, late 2026). The kernels of a release decide: if 2.13.0 has none, its
operator runs in MPSGraph (ceil, floor, trunc, mish, log_sigmoid_forward, logical_not, isposinf, isneginf).
"""

from __future__ import annotations

from collections.abc import Sequence

import torch

from ..call import Call
from ..iterator import geometry
from ..plan import KernelLaunch, Planner, ReleaseKernels, Step, in_line, keeps_stand_in, required
from .copies import copied, copies
from .metal_types import is_integral, metal_name
from .names import table
from .unary_kernels import FunctorParameter, unary

# Kernels named as the operator, which has the functional, the in-place and the out= overload.
# fmt: off
_PLAIN = (
    "acos", "asin", "atan", "bitwise_not", "cos", "cosh", "digamma", "erf", "erfc", "erfinv", "exp", "exp2",
    "expm1", "hardsigmoid", "hardswish", "i0", "lgamma", "log", "log10", "log1p", "log2", "logical_not", "mish",
    "neg", "reciprocal", "rsqrt", "sigmoid", "sin", "sinc", "sinh", "sqrt", "tan", "tanh",
)
# fmt: on

# torch.special: functional and out= alone, and the kernel's name.
_SPECIAL = {
    "special_bessel_j0": "bessel_j0_forward",
    "special_bessel_j1": "bessel_j1_forward",
    "special_bessel_y0": "bessel_y0_forward",
    "special_bessel_y1": "bessel_y1_forward",
    "special_entr": "entr",
    "special_erfcx": "erfcx",
    "special_i0e": "i0e",
    "special_i1": "i1",
    "special_i1e": "i1e",
    "special_modified_bessel_i0": "modified_bessel_i0_forward",
    "special_modified_bessel_i1": "modified_bessel_i1_forward",
    "special_modified_bessel_k0": "modified_bessel_k0_forward",
    "special_modified_bessel_k1": "modified_bessel_k1_forward",
    "special_scaled_modified_bessel_k0": "scaled_modified_bessel_k0_forward",
    "special_scaled_modified_bessel_k1": "scaled_modified_bessel_k1_forward",
    "special_spherical_bessel_j0": "spherical_bessel_j0",
}

# Rounding: integers are copied (CREATE_UNARY_TORCH_IMPL_INTEGER_NO_OP_FUNC of UnaryOps.cpp).
_ROUNDING = ("ceil", "floor", "round", "trunc")


def elementwise(kernel: str) -> Planner:
    """The planner of an operator of one tensor, its first argument."""

    def plan(call: Call, kernels: ReleaseKernels) -> Sequence[Step]:
        return [unary(kernels, kernel, call.result, next(iter(call.arguments.values())))]

    return plan


def _overloads(name: str) -> tuple[str, ...]:
    return name, f"{name}_", f"{name}.out"


def _rounding(kernel: str) -> Planner:
    def plan(call: Call, kernels: ReleaseKernels) -> Sequence[Step]:
        if is_integral(call["self"].dtype):
            return copies(kernels, call.result, call["self"])
        return [unary(kernels, kernel, call.result, call["self"])]

    return plan


def _of_complex_to_real(kernel: str) -> Planner:
    """`abs` and `angle`: for complex numbers the kernel writes complex results, whose real parts are then copied."""

    def plan(call: Call, kernels: ReleaseKernels) -> Sequence[Step]:
        source, result = call["self"], call.result
        if not source.is_complex() or result.is_complex():
            return [unary(kernels, kernel, result, source)]
        complex_result = torch.empty_like(source)
        return [
            unary(kernels, kernel, complex_result, source),
            copied(kernels, result, torch.view_as_real(complex_result).select(-1, 0)),
        ]

    return plan


def _round_decimals(call: Call, kernels: ReleaseKernels) -> Sequence[Step]:
    decimals = call["decimals"]
    if decimals == 0:
        return _rounding("round")(call, kernels)
    return [unary(kernels, "round_decimals", call.result, call["self"], FunctorParameter(decimals, "long"))]


def _gelu(call: Call, kernels: ReleaseKernels) -> Sequence[Step]:
    name = "gelu_tanh" if call["approximate"] == "tanh" else "gelu"
    return [unary(kernels, name, call.result, call["self"])]


@keeps_stand_in(1)
def _log_sigmoid_forward(call: Call, kernels: ReleaseKernels) -> Sequence[Step]:
    """Plan the first result only: the second is a buffer for the CPU's kernel, empty on a Mac and not read."""
    return [unary(kernels, "log_sigmoid_forward", call.result, call["self"])]


def _polygamma(call: Call, kernels: ReleaseKernels) -> Sequence[Step]:
    order = call["n"]
    if order in (0, 1):
        return [unary(kernels, ("digamma", "trigamma")[order], call.result, call["self"])]
    return [unary(kernels, "polygamma", call.result, call["self"], FunctorParameter(order, "int"))]


def _frexp(call: Call, kernels: ReleaseKernels) -> Sequence[Step]:
    """Two results of one tensor, as the arguments of the kernels suggest; 2.13.0 has no such kernels."""
    source, (mantissa, exponent) = call["self"], call.results
    walk = geometry(mantissa, exponent, source)
    arguments: dict[str, object] = {"mantissa": mantissa, "exponent": exponent, "input": source}
    if not walk.contiguous:
        arguments["sizes"] = list(walk.shape)
        for name, strides in zip(("mantissa", "exponent", "input"), walk.strides, strict=True):
            arguments[f"{name}_strides"] = list(strides)
        arguments["ndim"] = len(walk.shape)
    form = "dense" if walk.contiguous else "strided"
    kernel = required(kernels, f"frexp_{form}_{metal_name(source.dtype)}")
    return [KernelLaunch(kernel, arguments, *in_line(walk.numel))]


PLANNERS: dict[str, Planner] = {
    **table([(_overloads(name), name) for name in _PLAIN], elementwise),
    **table([((name, f"{name}.out"), kernel) for name, kernel in _SPECIAL.items()], elementwise),
    **table([(_overloads(name), name) for name in _ROUNDING], _rounding),
    **table([(_overloads("abs"), "abs"), (("angle", "angle.out"), "angle")], _of_complex_to_real),
    **table([((name, f"{name}.out"), name) for name in ("isposinf", "isneginf")], elementwise),
    **dict.fromkeys(("round.decimals", "round_.decimals", "round.decimals_out"), _round_decimals),
    **dict.fromkeys(("gelu", "gelu_", "gelu.out"), _gelu),
    **dict.fromkeys(("silu", "silu_", "silu.out"), elementwise("silu")),
    **dict.fromkeys(("log_sigmoid_forward", "log_sigmoid_forward.output"), _log_sigmoid_forward),
    **dict.fromkeys(("polygamma", "polygamma.out"), _polygamma),
    "frexp.Tensor_out": _frexp,
}
