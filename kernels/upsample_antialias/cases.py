"""What verifies the family."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import torch

from ..verification.calls import KernelCall
from ..verification.inputs import rounded_once, values

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
