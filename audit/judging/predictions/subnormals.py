"""Subnormal numbers taken for zero, as the Metal specification allows, by the CPU's own flag."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor

from .prediction import Prediction, Ulp


@contextmanager
def subnormals_flushed() -> Iterator[None]:
    """The CPU takes subnormal operands and results for zero. Raises NotImplementedError where it cannot."""
    if not torch.set_flush_denormal(True):
        raise NotImplementedError("this CPU cannot flush subnormal numbers")
    try:
        yield
    finally:
        torch.set_flush_denormal(False)


def atan2(ulp: Ulp, input: Tensor, other: Tensor) -> Tensor | None:
    """NaN, the quotient of zeros, where both are subnormal."""
    if not input.is_floating_point():
        return None
    tiny = torch.finfo(input.dtype).smallest_normal
    zeros = (input.abs() < tiny) & (other.abs() < tiny) & ((input != 0) | (other != 0))
    return torch.where(zeros, torch.nan, torch.atan2(input, other))


def digamma(ulp: Ulp, input: Tensor) -> Tensor:
    """NaN, the difference of infinities, of a subnormal number."""
    tiny = (input != 0) & (input.abs() < torch.finfo(input.dtype).smallest_normal)
    return torch.where(tiny, torch.nan, torch.special.digamma(input))


SUBNORMALS = (
    Prediction("subnormals-count-as-zero", {"aten::atan2": atan2, "aten::digamma": digamma}, without_calls=True),
)
