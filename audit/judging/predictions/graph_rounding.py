"""Models of graphs that round before a cancellation or overflow, where the CPU uses a wider dtype."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from .complex_functions import div, negated_zeros
from .graphs import BATCH_NORMS, asinh, channel_dims, off_by_magnitude
from .prediction import Model, Prediction, Ulp

aten = torch.ops.aten
LEAST_LOGARITHM = -100
SMALL_INTEGERS = (torch.int8, torch.int16, torch.uint8)
# A sum of more halves than these is one of parts, which are added in the dtype.
LONG_ROW = 2**17


def binary_cross_entropy(
    ulp: Ulp, input: Tensor, target: Tensor, weight: Tensor | None = None, reduction: int = 1
) -> Tensor | None:
    """The loss with log(1 - x), where 1 - x is rounded to the dtype; the CPU computes log1p(-x)."""
    if not input.is_floating_point():
        return None
    taken, left = (ulp(values.log()).clamp(min=LEAST_LOGARITHM) for values in (input, ulp(1 - input)))
    loss = ulp(ulp(target * taken) + ulp(ulp(1 - target) * left)).neg()
    loss = loss if weight is None else ulp(loss * weight)
    return (loss, loss.mean(), loss.sum())[reduction]


def batch_norm(
    ulp: Ulp, input: Tensor, weight: Tensor | None, bias: Tensor | None, *rest: Any
) -> tuple[Tensor, None, Tensor] | None:
    """The batch norm with a mean that is rounded before it is subtracted, and an eps of the tensors' dtype."""
    dims = channel_dims(input, rest)
    if dims is None or not input.is_floating_point():
        return None
    centred = input - ulp(input.mean(dims, keepdim=True))
    eps = torch.tensor(rest[-1], dtype=input.dtype)
    deviation = ulp((ulp(centred.square().mean(dims, keepdim=True)) + eps).rsqrt())
    scale, shift = (None if values is None else values.view(deviation.shape) for values in (weight, bias))
    result = centred * deviation if scale is None else centred * deviation * scale
    return result if shift is None else result + shift, None, deviation.flatten()


def batch_norm_backward(overload: str) -> Model:
    """The deviation is the root of the variance that the graph computes back from it, so that it has no sign."""

    def model(ulp: Ulp, grad: Tensor, input: Tensor, *rest: Any) -> list[Tensor | None] | None:
        *statistics, deviation, train, eps, mask = rest[:8]
        if not train or deviation is None or not deviation.numel():
            return None
        variance = ulp(ulp(ulp(1 / deviation).square()) - eps)
        again = ulp((variance + eps).rsqrt())
        gradients = getattr(aten, overload)(grad, input, *statistics, again, train, eps, mask, *rest[8:])
        return list(gradients)

    return model


def product_of_vectors(ulp: Ulp, left: Tensor, right: Tensor) -> Tensor | None:
    """NaN where a partial sum may overflow half precision."""
    return _of_parts(left.double() * right.double(), None, False) if left.dtype is torch.float16 else None


def sum_of_numbers(
    ulp: Ulp, input: Tensor, dim: Any = None, keepdim: bool = False, *, dtype: Any = None
) -> Tensor | None:
    """NaN where a partial sum may overflow half precision."""
    if input.dtype is not torch.float16 or dtype not in (None, torch.float16):
        return None
    return _of_parts(torch.where(input.isnan(), 0, input).double(), dim or None, keepdim)


def _of_parts(terms: Tensor, dim: Any, keepdim: bool) -> Tensor | None:
    sums, parts = (values.sum(dim, keepdim) for values in (terms, terms.abs()))
    if terms.numel() <= LONG_ROW * sums.numel():
        return None
    return torch.where(parts > torch.finfo(torch.float16).max, torch.nan, sums).half()


def addbmm(ulp: Ulp, input: Tensor, left: Tensor, right: Tensor, *, beta: Any = 1, alpha: Any = 1) -> Tensor | None:
    """The sum of products that are rounded to bfloat16 one by one."""
    if input.dtype is not torch.bfloat16:
        return None
    return ulp(ulp(ulp(left @ right).sum(0)) * alpha + ulp(input * beta))


def linspace(ulp: Ulp, start: Any, end: Any, steps: int, *, dtype: Any = None, **options: Any) -> Tensor | None:
    """Steps between the ends as floats, truncated to integers; the CPU truncates both ends first."""
    if (dtype is not None and (dtype.is_floating_point or dtype.is_complex)) or steps < 2:
        return None
    if any(isinstance(limit, complex) for limit in (start, end)):
        return None
    first, last = float(start), float(end)
    values = ulp(torch.arange(steps, dtype=torch.float32) * ((last - first) / (steps - 1)) + first)
    return _as_int64(values) if dtype is torch.int64 else values


def _as_int64(values: Tensor) -> Tensor:
    """Floats truncated as on arm64, which gives the largest int64 for all beyond it; x86-64 gives the least one."""
    inside = torch.where(values < 2.0**63, values.nan_to_num(0.0, 0.0).long(), torch.iinfo(torch.int64).max)
    return torch.where(values.isnan(), 0, inside)


def sgn(ulp: Ulp, input: Tensor) -> Tensor | None:
    """z by the root of the sum of its parts' squares, which overflow or vanish; zero where the root is zero."""
    if not input.is_complex():
        return None
    parts = torch.view_as_real(input)
    size = ulp(ulp(parts.square()).sum(-1, keepdim=True).sqrt())
    return torch.view_as_complex(torch.where(size == 0, 0, parts / size))


def prod(ulp: Ulp, input: Tensor, *dims: Any, dtype: Any = None) -> Tensor | None:
    """A product of small integers is one of float32 numbers, and one of int32 wraps to 32 bits."""
    if dtype not in (None, torch.int64, *SMALL_INTEGERS):
        return None
    if input.dtype is torch.int32:
        return input.prod(*dims, dtype=torch.int32).long()
    if input.dtype not in SMALL_INTEGERS:
        return None
    return _as_int64(input.float().prod(*dims)).to(torch.int64 if dtype is None else dtype)


def product_in_halves(ulp: Ulp, input: Tensor, *dims: Any, dtype: Any = None) -> Tensor | None:
    """NaN for a product of integers with a zero, whose other factors are beyond half precision."""
    if dtype is not torch.float16 or input.is_floating_point() or input.is_complex():
        return None
    others = torch.where(input == 0, 1, input).double().abs().prod(*dims)
    has_zero = input.double().prod(*dims) == 0
    return torch.where(has_zero & (others > torch.finfo(torch.float16).max), torch.nan, input.prod(*dims, dtype=dtype))


def asinh_of_negated(ulp: Ulp, input: Tensor) -> Tensor | None:
    """`asinh`, where the zeros of a lazily negated number are negative; the CPU's are not."""
    return asinh(ulp, negated_zeros(input)) if input.is_complex() else None


def acosh_of_negated(ulp: Ulp, input: Tensor) -> Tensor | None:
    """As `asinh_of_negated`."""
    return off_by_magnitude(ulp, torch.acosh(negated_zeros(input))) if input.is_complex() else None


def addcdiv(ulp: Ulp, input: Tensor, first: Tensor, second: Tensor, *, value: Any = 1) -> Tensor | None:
    """input + value * (first / second), where `div` computes a complex quotient; one by zero is NaN.

    The factor is converted to the dtype of the input.
    """
    quotient = div(ulp, first, second)
    if not (input.is_floating_point() or input.is_complex()):
        value = int(value.real)
    if quotient is None:
        return ulp(input + ulp(value * ulp(first / second)))
    scaled: Tensor = value * torch.where(second == 0, complex(torch.nan, torch.nan), quotient)
    return input + scaled


def nll_loss_backward(
    ulp: Ulp, grad: Tensor, input: Tensor, target: Tensor, weight: Any, reduction: int, ignored: int, total: Tensor
) -> Tensor | None:
    """The gradient of a mean of no weight is zero, as a division by zero is."""
    return torch.zeros_like(input) if reduction == 1 and not bool(total.any()) else None


def nan_to_num(ulp: Ulp, input: Tensor, nan: Any = None, posinf: Any = None, neginf: Any = None) -> Tensor | None:
    """Each replacement is replaced again: NaN, then the negative infinity, then any infinity, whatever its sign."""
    if not input.is_floating_point():
        return None
    limits = torch.finfo(input.dtype)
    result = torch.where(input.isnan(), 0.0 if nan is None else nan, input)
    result = torch.where(result == -torch.inf, limits.min if neginf is None else neginf, result)
    return torch.where(result.isinf(), limits.max if posinf is None else posinf, result)


GRAPH_ROUNDING = (
    Prediction("infinities-replaced-again", {"aten::nan_to_num": nan_to_num}),
    Prediction("area-functions-of-negated-numbers", {"aten::asinh": asinh_of_negated, "aten::acosh": acosh_of_negated}),
    Prediction("quotients-inside-addcdiv", {"aten::addcdiv": addcdiv}, nan_is_any_non_finite=True),
    Prediction(
        "gradients-of-no-weight",
        dict.fromkeys(("aten::nll_loss_backward", "aten::nll_loss2d_backward"), nll_loss_backward),
    ),
    Prediction("log-of-one-less", {"aten::binary_cross_entropy": binary_cross_entropy}),
    Prediction("means-of-a-batch-rounded-first", {f"aten::{name}": batch_norm for name in BATCH_NORMS}),
    Prediction(
        "deviations-of-a-batch-without-sign",
        {f"aten::{name}": batch_norm_backward(name) for name in ("native_batch_norm_backward", "batch_norm_backward")},
    ),
    Prediction("products-of-a-batch-rounded", {"aten::addbmm": addbmm}),
    Prediction("integers-between-floats", {"aten::linspace": linspace}),
    Prediction("complex-signs-by-squares", {"aten::sgn": sgn}),
    Prediction("products-of-integers-as-floats", {"aten::prod": prod}),
    Prediction(
        "parts-of-a-sum-overflow",
        {
            **{f"aten::{name}": product_of_vectors for name in ("dot", "vdot")},
            **{f"aten::{name}": sum_of_numbers for name in ("nansum", "sum")},
            "aten::prod": product_in_halves,
        },
        nan_is_any_non_finite=True,
    ),
)
