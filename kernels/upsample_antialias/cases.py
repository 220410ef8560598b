"""The calls that verify and time the family."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import torch

from ..verification.calls import KernelCall
from ..verification.inputs import rounded_once, values
from ..verification.workload import Workload

_aten = torch.ops.aten
# Older torch has no Lanczos.
_NAMES = tuple(
    name
    for name in (f"_upsample_{filter_name}2d_aa_backward" for filter_name in ("bilinear", "bicubic", "lanczos"))
    if hasattr(_aten, name)
)
# Sizes of gradients, inputs, whether corners are aligned, and given scales.
_SIZES: tuple[tuple[Any, ...], ...] = (
    ((2, 3, 4, 5), (9, 13), False, None, None),
    ((2, 3, 9, 13), (4, 5), False, None, None),
    ((1, 2, 6, 3), (6, 11), True, None, None),
    ((1, 1, 1, 7), (5, 7), True, None, None),
    ((1, 2, 4, 6), (8, 3), False, 0.55, 1.9),
    ((0, 2, 4, 6), (8, 3), False, None, None),
    ((1, 1, 2, 3), (40, 90), False, None, None),
)


def _gradients(dtype: torch.dtype) -> Iterator[tuple[Any, ...]]:
    for shape, inputs, align, *scales in _SIZES:
        yield values(shape, dtype), shape[2:], (*shape[:2], *inputs), align, *scales


def _backward(name: str) -> Callable[..., Any]:
    overload = getattr(_aten, name).default

    def call(dy: torch.Tensor, *arguments: Any) -> Any:
        return overload(dy, *arguments)

    return call


CASES = tuple(KernelCall(name, (f"aten::{name}",), rounded_once(_backward(name)), _gradients) for name in _NAMES)


def _half_size(dy: torch.Tensor) -> torch.Tensor:
    sides = [2 * side for side in dy.shape[2:]]
    backward = torch.ops.aten._upsample_bilinear2d_aa_backward
    return backward(dy, dy.shape[2:], (*dy.shape[:2], *sides), False)  # type: ignore[no-any-return]


def _image(elements: int) -> tuple[torch.Tensor]:
    """An image with three channels, at half the size of the input."""
    side = max(1, math.isqrt(elements // 12))
    return (torch.randn(1, 3, side, side),)


WORKLOAD = Workload("aten::_upsample_bilinear2d_aa_backward.grad_input", _half_size, _image)
