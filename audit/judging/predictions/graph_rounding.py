"""Models of graphs that round before a cancellation or overflow, where the CPU uses a wider dtype."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from .graphs import BATCH_NORMS, channel_dims
from .prediction import Prediction, Ulp

LEAST_LOGARITHM = -100
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
) -> tuple[Tensor, None, None] | None:
    """The batch norm with a mean that is rounded before it is subtracted."""
    dims = channel_dims(input, rest)
    if dims is None or not input.is_floating_point():
        return None
    centred = input - ulp(input.mean(dims, keepdim=True))
    deviation = ulp((ulp(centred.square().mean(dims, keepdim=True)) + rest[-1]).rsqrt())
    scale, shift = (None if values is None else values.view(deviation.shape) for values in (weight, bias))
    result = centred * deviation if scale is None else centred * deviation * scale
    return result if shift is None else result + shift, None, None


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


GRAPH_ROUNDING = (
    Prediction("log-of-one-less", {"aten::binary_cross_entropy": binary_cross_entropy}),
    Prediction("means-of-a-batch-rounded-first", {f"aten::{name}": batch_norm for name in BATCH_NORMS}),
    Prediction(
        "parts-of-a-sum-overflow",
        {"aten::dot": product_of_vectors, "aten::vdot": product_of_vectors, "aten::nansum": sum_of_numbers},
        nan_is_any_non_finite=True,
    ),
)
