"""The calls that verify and time the family."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import torch

from ...audit.model.case import Case
from ..verification.calls import KernelCall
from ..verification.inputs import integers, rounded_once, values
from ..verification.workload import Workload

_aten = torch.ops.aten
# Sizes of outputs, inputs, whether corners are aligned, and given scales.
_SIZES: tuple[tuple[Any, ...], ...] = (
    ((2, 3, 4, 5), (9, 13), False, None, None),
    ((2, 3, 9, 13), (4, 5), False, None, None),
    ((1, 2, 6, 3), (6, 11), True, None, None),
    ((1, 1, 1, 7), (5, 7), True, None, None),
    ((1, 2, 4, 6), (8, 3), False, 0.55, 1.9),
    ((0, 2, 4, 6), (8, 3), False, None, None),
    ((1, 1, 2, 3), (40, 90), False, None, None),
)


def _bytes(dtype: torch.dtype) -> Iterator[tuple[Any, ...]]:
    """Images of bytes; some with only 0 and 255, whose sums are clamped."""
    for shape, outputs, align, *scales in (
        ((2, 3, 9, 13), (4, 5), False, None, None),
        ((1, 2, 5, 6), (17, 11), False, None, None),
        ((1, 1, 8, 8), (8, 3), True, None, None),
        ((2, 1, 8, 8), (8, 8), False, 2.0, 0.5),
        ((1, 2, 4, 6), (8, 3), False, 2.1, 0.55),
        ((1, 1, 70, 90), (3, 5), False, None, None),
        ((0, 2, 4, 6), (8, 3), False, None, None),
        ((1, 6, 3, 2), (7, 9), False, None, None),
    ):
        for low, step in ((0, 1), (0, 255)):
            yield integers(shape, low, 256 // step).mul(step).to(dtype), outputs, align, *scales


def _images(dtype: torch.dtype) -> Iterator[tuple[Any, ...]]:
    for shape, inputs, align, *scales in _SIZES:
        yield values((*shape[:2], *inputs), dtype), shape[2:], align, *scales


def _forward(name: str) -> Callable[..., Any]:
    overload = getattr(_aten, name).default

    def call(x: torch.Tensor, *arguments: Any) -> Any:
        return overload(x, *arguments)

    return call


def _into(name: str) -> Callable[..., Any]:
    """The out= form; on mps with transposed memory, which the CPU's kernel for bytes does not support."""
    operator = getattr(_aten, name)

    def call(x: torch.Tensor, size: tuple[int, int], *arguments: Any) -> Any:
        if x.device.type == "cpu":
            return operator.default(x, size, *arguments)
        turned = torch.empty((*x.shape[:2], *reversed(size)), dtype=x.dtype, device=x.device)
        return operator.out(x, size, *arguments, out=turned.mT).contiguous()

    return call


def undefined(case: Case) -> str:
    """Why a recorded call has no defined result, or ""."""
    given = [x for x in case.kwargs.values() if isinstance(x, torch.Tensor)]
    if any(x.dtype is torch.uint8 for x in given):
        return "the CPU writes bytes beyond outputs that are not contiguous"
    return ""


_LANCZOS = "_upsample_lanczos2d_aa"
_BYTES = tuple(
    KernelCall(name, (f"aten::{name}",), form(name), _bytes, (torch.uint8,), variant=variant)
    for name in ("_upsample_bilinear2d_aa", "_upsample_bicubic2d_aa", _LANCZOS)
    for variant, form in (("bytes", _forward), ("bytes into", _into))
    if hasattr(_aten, name)
)
_CLAMPED = tuple(
    KernelCall(
        "nn.functional.interpolate",
        ("aten::upsample_bicubic2d",),
        form("upsample_bicubic2d"),
        _bytes,
        (torch.uint8,),
        variant=f"bicubic, {variant}",
    )
    for variant, form in (("bytes", _forward), ("bytes into", _into))
)
_FLOATS = tuple(
    KernelCall(name, (f"aten::{name}",), rounded_once(_forward(name)), _images)
    for name in (_LANCZOS,)
    if hasattr(_aten, name)
)
CASES = _BYTES + _CLAMPED + _FLOATS


def _half_size(x: torch.Tensor) -> torch.Tensor:
    return torch.ops.aten._upsample_lanczos2d_aa(x, [x.shape[2] // 2, x.shape[3] // 2], False)  # type: ignore[no-any-return]


def _timed_images(elements: int) -> tuple[torch.Tensor]:
    side = max(2, math.isqrt(elements // 3))
    return (torch.rand(1, 3, side, side).mul(256).to(torch.uint8),)


WORKLOAD = Workload("aten::_upsample_lanczos2d_aa", _half_size, _timed_images)
