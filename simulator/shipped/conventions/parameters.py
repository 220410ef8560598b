"""Elementwise operators with parameters: activations with slopes and thresholds, clamp to numbers, powers, nan_to_num.

Source: ActivationKernel.mm, UnaryKernel.mm and TensorCompare.mm of aten/src/ATen/native/mps/operations and
aten/src/ATen/native/{Pow,TensorCompare,Activation}.cpp (main, late 2026). A release without a kernel named `relu` is
assumed to compute `clamp_min(0)`, as torch's generic `relu` does.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from ..call import Call
from ..plan import Declined, Planner, ReleaseKernels, Step
from .binary_kernels import binary, parameter_of, real_number
from .copies import copied
from .fills import filled
from .metal_types import is_integral, metal_name
from .unary_kernels import FunctorParameter, unary


def _slope(kernel: str, argument: str) -> Planner:
    """The planner of an activation with one number, which is passed in the operand's dtype."""

    def plan(call: Call, kernels: ReleaseKernels) -> Sequence[Step]:
        parameter = parameter_of(call[argument], call["self"].dtype)
        return [unary(kernels, kernel, call.result, call["self"], parameter)]

    return plan


def _slope_backward(kernel: str, left: str, right: str, argument: str, absent: float | None = None) -> Planner:
    """The planner of such an activation's gradient; `absent` is used if the number is None."""

    def plan(call: Call, kernels: ReleaseKernels) -> Sequence[Step]:
        value = absent if call[argument] is None else call[argument]
        parameter = parameter_of(value, call[left].dtype)
        return [binary(kernels, kernel, call.result, call[left], call[right], parameter)]

    return plan


def _struct(name: str, dtype: torch.dtype, members: dict[str, Any]) -> FunctorParameter:
    """Parameters in a struct; its members have one dtype, which is part of its name."""
    return FunctorParameter(
        {key: _number(value, dtype) for key, value in members.items()}, f"{name}_{metal_name(dtype)}"
    )


def _number(value: Any, dtype: torch.dtype) -> bool | int | float:
    """The value of a member in the dtype; a flag stays a bool."""
    return value if isinstance(value, bool) else real_number(value, dtype)


_ELU = ("alpha", "scale", "input_scale")


def _elu(call: Call, kernels: ReleaseKernels) -> Sequence[Step]:
    parameter = _struct("ELUParams", call["self"].dtype, {name: call[name] for name in _ELU})
    return [unary(kernels, "elu", call.result, call["self"], parameter)]


def _elu_backward(call: Call, kernels: ReleaseKernels) -> Sequence[Step]:
    gradient, other = call["grad_output"], call["self_or_result"]
    members = {name: call[name] for name in (*_ELU, "is_result")}
    parameter = _struct("ELUBackwardParams", gradient.dtype, members)
    return [binary(kernels, "elu_backward", call.result, gradient, other, parameter)]


def _softplus_parameter(call: Call) -> FunctorParameter:
    members = {"beta": float(call["beta"]), "threshold": float(call["threshold"])}
    return FunctorParameter(members, "SoftplusParams")


def _softplus(call: Call, kernels: ReleaseKernels) -> Sequence[Step]:
    return [unary(kernels, "softplus", call.result, call["self"], _softplus_parameter(call))]


def _softplus_backward(call: Call, kernels: ReleaseKernels) -> Sequence[Step]:
    operands = call["grad_output"], call["self"]
    return [binary(kernels, "softplus_backward", call.result, *operands, _softplus_parameter(call))]


def _clamp_to(lower: str | None, upper: str | None) -> Planner:
    """The planner of a clamp to the numbers in these arguments."""

    def plan(call: Call, kernels: ReleaseKernels) -> Sequence[Step]:
        minimum = call[lower] if lower else None
        maximum = call[upper] if upper else None
        return _clamped(kernels, call.result, call["self"], minimum, maximum)

    return plan


def _clamped(kernels: ReleaseKernels, result: Tensor, source: Tensor, minimum: Any, maximum: Any) -> Sequence[Step]:
    bounds = [bound for bound in (minimum, maximum) if bound is not None]
    if any(math.isnan(bound) for bound in bounds):
        return [filled(kernels, result, math.nan)]
    common = source.dtype
    for bound in bounds:
        common = torch.promote_types(common, torch.result_type(source, bound))
    steps, converted = _promoted(kernels, source, common)
    if minimum is None or maximum is None:
        kernel = "clamp_max_scalar" if minimum is None else "clamp_min_scalar"
        parameter = parameter_of(bounds[0], common)
    else:
        kernel = "clamp_scalar"
        parameter = _struct("ClampScalarParams", common, {"min": minimum, "max": maximum})
    return [*steps, unary(kernels, kernel, result, converted, parameter)]


def _promoted(kernels: ReleaseKernels, source: Tensor, dtype: torch.dtype) -> tuple[list[Step], Tensor]:
    """The steps that convert a tensor to the dtype of the operator's meta function, and the converted tensor."""
    if source.dtype == dtype:
        return [], source
    converted = torch.empty_like(source, dtype=dtype)
    return [copied(kernels, converted, source)], converted


def _relu(call: Call, kernels: ReleaseKernels) -> Sequence[Step]:
    if "relu_strided_float_float" in kernels:
        return [unary(kernels, "relu", call.result, call["self"])]
    return _clamped(kernels, call.result, call["self"], 0, None)


def _power(call: Call, kernels: ReleaseKernels) -> Sequence[Step]:
    """A tensor to the power of a number: 0 fills with ones, 1 copies, and some numbers have separate kernels."""
    base, exponent, result = call["self"], call["exponent"], call.result
    if exponent == 0:
        return [filled(kernels, result, 1)]
    if exponent == 1:
        in_place = base.data_ptr() == result.data_ptr() and base.dtype == result.dtype
        return [] if in_place else [copied(kernels, result, base)]
    common = torch.result_type(base, exponent)
    steps, converted = _promoted(kernels, base, common)
    return [*steps, _power_launch(kernels, result, converted, exponent)]


_OWN_KERNELS = {-1: "reciprocal", -0.5: "rsqrt", 0.5: "sqrt"}


def _power_launch(kernels: ReleaseKernels, result: Tensor, base: Tensor, exponent: complex) -> Step:
    if exponent == 2 and not isinstance(exponent, complex):
        return unary(kernels, "sqr", result, base)
    if is_integral(base.dtype):
        return unary(kernels, "pow_scalar", result, base, parameter_of(exponent, torch.int32))
    if isinstance(exponent, complex):
        return unary(kernels, "pow_scalar", result, base, parameter_of(exponent, torch.complex64))
    own = _OWN_KERNELS.get(exponent)
    if own is not None:
        return unary(kernels, own, result, base)
    dtype = torch.complex64 if base.dtype.is_complex else torch.float32
    return unary(kernels, "pow_scalar", result, base, parameter_of(exponent, dtype))


def _power_of_number(call: Call, kernels: ReleaseKernels) -> Sequence[Step]:
    base, exponent = call["self"], call["exponent"]
    if base == 1:
        return [filled(kernels, call.result, 1)]
    return [binary(kernels, "pow", call.result, base, exponent)]


def _nan_to_num(call: Call, kernels: ReleaseKernels) -> Sequence[Step]:
    source = call["self"]
    if is_integral(source.dtype):
        return [copied(kernels, call.result, source)]
    limits = torch.finfo(source.dtype)
    members = {
        "nan": 0.0 if call["nan"] is None else float(call["nan"]),
        "posinf": limits.max if call["posinf"] is None else float(call["posinf"]),
        "neginf": limits.min if call["neginf"] is None else float(call["neginf"]),
    }
    parameter = FunctorParameter(members, "NanToNumParams_float")
    return [unary(kernels, "nan_to_num", call.result, source, parameter)]


def _hardtanh(call: Call, kernels: ReleaseKernels) -> Sequence[Step]:
    """`hardtanh`, which is `clamp`; for integers, bounds are rounded towards zero."""
    source, bounds = call["self"], (call["min_val"], call["max_val"])
    if is_integral(source.dtype) and any(isinstance(bound, float) for bound in bounds):
        bounds = (int(bounds[0]), int(bounds[1]))
    if source.dtype == torch.bool:
        raise Declined("hardtanh of bool")
    return _clamped(kernels, call.result, source, *bounds)


def _forms(name: str, inplace: bool = True) -> tuple[str, ...]:
    return (name, f"{name}_", f"{name}.out") if inplace else (name, f"{name}.out")


def _gradient(name: str) -> tuple[str, str]:
    return name, f"{name}.grad_input"


_ROWS: list[tuple[tuple[str, ...], Planner]] = [
    (_forms("hardshrink", inplace=False), _slope("hardshrink", "lambd")),
    (_forms("softshrink", inplace=False), _slope("softshrink", "lambd")),
    (_forms("leaky_relu"), _slope("leaky_relu", "negative_slope")),
    (_gradient("hardshrink_backward"), _slope_backward("shrink_backward", "grad_out", "self", "lambd")),
    (_gradient("softshrink_backward"), _slope_backward("shrink_backward", "grad_output", "self", "lambd")),
    (_gradient("leaky_relu_backward"), _slope_backward("leaky_relu_backward", "self", "grad_output", "negative_slope")),
    (_gradient("logit_backward"), _slope_backward("logit_backward", "grad_output", "self", "eps", absent=-1.0)),
    (_forms("elu"), _elu),
    (_gradient("elu_backward"), _elu_backward),
    (_forms("softplus", inplace=False), _softplus),
    (_gradient("softplus_backward"), _softplus_backward),
    (_forms("clamp"), _clamp_to("min", "max")),
    (_forms("clamp_min"), _clamp_to("min", None)),
    (_forms("clamp_max"), _clamp_to(None, "max")),
    (_forms("hardtanh"), _hardtanh),
    (("relu", "relu_"), _relu),
    (("pow.Tensor_Scalar", "pow_.Scalar", "pow.Tensor_Scalar_out"), _power),
    (("pow.Scalar", "pow.Scalar_out"), _power_of_number),
    (("nan_to_num.out",), _nan_to_num),
]

PLANNERS: dict[str, Planner] = {name: planner for names, planner in _ROWS for name in names}
