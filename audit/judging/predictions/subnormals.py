"""Subnormal numbers flushed to zero, as the Metal specification allows, by the CPU's own flag."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor

from .prediction import Prediction, Ulp
from .reductions import largest_partial_sum


@contextmanager
def subnormals_flushed() -> Iterator[None]:
    """The CPU flushes subnormal operands and results to zero. Raises NotImplementedError if it cannot."""
    if not torch.set_flush_denormal(True):
        raise NotImplementedError("this CPU cannot flush subnormal numbers")
    try:
        yield
    finally:
        torch.set_flush_denormal(False)


def atan2(ulp: Ulp, input: Tensor, other: Tensor) -> Tensor | None:
    """NaN, the quotient of two zeros, where both operands are subnormal."""
    if not input.is_floating_point():
        return None
    tiny = torch.finfo(input.dtype).smallest_normal
    zeros = (input.abs() < tiny) & (other.abs() < tiny) & ((input != 0) | (other != 0))
    return torch.where(zeros, torch.nan, torch.atan2(input, other))


def digamma(ulp: Ulp, input: Tensor) -> Tensor:
    """NaN, the difference of infinities, for a subnormal number."""
    tiny = (input != 0) & (input.abs() < torch.finfo(input.dtype).smallest_normal)
    return torch.where(tiny, torch.nan, torch.special.digamma(input))


def cumprod(ulp: Ulp, input: Tensor, dim: int, *, dtype: torch.dtype | None = None) -> Tensor | None:
    """Zero once a product of consecutive elements is subnormal; the CPU multiplies in float64."""
    values = input if dtype is None else input.to(dtype)
    if values.dtype is not torch.float32:
        return None
    vanishes = largest_partial_sum(-values.abs().double().log(), dim) > -math.log(torch.finfo(torch.float32).tiny)
    return torch.where(vanishes, 0, torch.cumprod(values, dim))


def convolution(ulp: Ulp, input: Tensor, weight: Tensor, bias: Tensor | None, *geometry: Any) -> Tensor | None:
    """A subnormal bias counts as zero, because a separate kernel adds it."""
    if bias is None or not bias.is_floating_point():
        return None
    tiny = bias.abs() < torch.finfo(bias.dtype).smallest_normal
    return torch.ops.aten.convolution(input, weight, torch.where(tiny, 0, bias), *geometry)  # type: ignore[no-any-return]


SUBNORMALS = (
    Prediction(
        "subnormals-count-as-zero",
        {"aten::atan2": atan2, "aten::cumprod": cumprod, "aten::digamma": digamma, "aten::convolution": convolution},
        without_calls=True,
    ),
)
