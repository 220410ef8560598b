"""Models of releases' kernels that convert floats outside the range of the integer dtype."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from .prediction import Model, Prediction, ReplacedResult, Ulp


def _saturated(values: Tensor, dtype: torch.dtype | None) -> Tensor | None:
    """The values clamped to the range of an integer dtype; NaN becomes zero. None for other dtypes."""
    if dtype is None or dtype.is_floating_point or dtype.is_complex or dtype is torch.bool:
        return None
    if values.is_complex():
        values = values.real
    if not values.is_floating_point():
        return None
    limits, wide = torch.iinfo(dtype), values.double().nan_to_num(0.0, torch.inf, -torch.inf)
    above, below = wide >= float(limits.max) + 1, wide <= limits.min
    inside = torch.where(above | below, 0.0, wide).to(dtype)
    return torch.where(above, limits.max, torch.where(below, limits.min, inside))


def to_copy(ulp: Ulp, input: Tensor, *, dtype: Any = None, **keywords: Any) -> Tensor | None:
    """The conversion saturates."""
    return _saturated(input, dtype)


def copy(ulp: Ulp, input: Tensor, source: Tensor, non_blocking: bool = False) -> Tensor | None:
    """The conversion saturates."""
    converted = _saturated(source, input.dtype)
    return None if converted is None else converted.expand_as(input)


def of_converted(overload: str) -> Model:
    """The sum or scan of the converted numbers."""

    def model(ulp: Ulp, input: Tensor, *options: Any, dtype: Any = None, **named: Any) -> Tensor | None:
        converted = _saturated(input, dtype)
        return None if converted is None else getattr(torch.ops.aten, overload)(converted, *options, **named)

    return model


def foreach_copy(ulp: Ulp, inputs: list[Tensor], sources: list[Tensor], non_blocking: bool = False) -> Any:
    """As `copy`, for each pair of tensors."""
    return [copy(ulp, *pair) for pair in zip(inputs, sources, strict=False)]


def addcmul(ulp: Ulp, input: Tensor, first: Tensor, second: Tensor, *, value: Any = 1) -> Tensor | None:
    """The factor is converted to the dtype of the first tensor."""
    if input.is_floating_point() or isinstance(value, complex) or input.is_complex():
        return None
    return torch.addcmul(input, first, second, value=int(value))


def isin(ulp: Ulp, elements: Any, tests: Any, *, invert: bool = False, **named: Any) -> Tensor | None:
    """A number is converted to the dtype of the tensor, also where it is out of range."""
    if isinstance(elements, Tensor) or tests.is_floating_point() or not isinstance(elements, int):
        return None
    return torch.any(torch.tensor(elements).to(tests.dtype) == tests) ^ invert


def logical(overload: str) -> Model:
    """Complex numbers are converted to booleans by their real part."""

    def model(ulp: Ulp, input: Tensor, other: Tensor) -> Tensor | None:
        real = [operand.real if operand.is_complex() else operand for operand in (input, other)]
        if not (input.is_complex() or other.is_complex()):
            return None
        return getattr(torch.ops.aten, overload)(*real)  # type: ignore[no-any-return]

    return model


def smooth_l1_loss_backward(
    ulp: Ulp, grad: Tensor, input: Tensor, target: Tensor, reduction: int, beta: float
) -> Tensor | None:
    """The difference of integers wraps, and its magnitude, too; then it is divided by their number if that is asked."""
    if input.is_floating_point() or input.dtype is not target.dtype or beta < 1:
        return None
    less = input - target
    step = torch.where(less.abs() < beta, less.div(int(beta), rounding_mode="trunc"), less.sign())
    parts = step.long().div(input.numel() if reduction == 1 else 1, rounding_mode="trunc")
    return parts.to(input.dtype) * grad


def range_of_integers(
    ulp: Ulp, start: Any, end: Any, step: Any = 1, *, dtype: Any = None, out: Tensor | None = None, **options: Any
) -> ReplacedResult | None:
    """The count is that between the ends as they are given; the CPU cuts both to integers first."""
    dtype = dtype if out is None else out.dtype
    if dtype not in (torch.int8, torch.uint8, torch.int16, torch.int32) or not int(step):
        return None
    return ReplacedResult((int(start) + int(step) * torch.arange(int((end - start) / step) + 1)).to(dtype))


def power_of_a_number(ulp: Ulp, base: Any, exponent: Any, *, out: Tensor | None = None) -> Tensor | None:
    """The power is one of the output's floats; the CPU converts a power of integers to them."""
    if not isinstance(base, int) or not isinstance(exponent, Tensor) or out is None or not out.is_floating_point():
        return None
    if exponent.is_floating_point() or exponent.is_complex() or exponent.dtype is torch.bool:
        return None
    return ulp(torch.pow(float(base), exponent.double())).to(out.dtype)


CONVERTING = {f"aten::{name}": of_converted(name) for name in ("sum", "cumsum", "cumprod")}
CONVERSIONS = (
    Prediction(
        "float-beyond-the-integers",
        {"aten::_to_copy": to_copy, "aten::copy": copy, "aten::_foreach_copy": foreach_copy, **CONVERTING},
    ),
    Prediction("factors-cut-to-integers", {"aten::addcmul": addcmul}),
)
CONVERSIONS_OF_HOST_CODE = (
    Prediction("numbers-in-the-dtype-of-a-tensor", {"aten::isin": isin}),
    Prediction(
        "real-parts-as-booleans", {f"aten::logical_{name}": logical(f"logical_{name}") for name in ("and", "or", "xor")}
    ),
    Prediction("differences-that-wrap", {"aten::smooth_l1_loss_backward": smooth_l1_loss_backward}),
    Prediction(
        "floats-reduced-as-integers", {"aten::prod": of_converted("prod"), "aten::nansum": of_converted("nansum")}
    ),
    Prediction("ranges-between-floats", {"aten::range": range_of_integers}, counts_integers=True),
    Prediction("powers-of-floats-into-an-output", {"aten::pow": power_of_a_number}),
)
