"""The calls that verify and time the family, if torchvision is loaded."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch

from ..verification.calls import FLOATING, KernelCall
from ..verification.inputs import values
from ..verification.workload import Workload

_OPERATORS = ("torchvision::deform_conv2d", "torchvision::_deform_conv2d_backward")


def _convolved(
    x: torch.Tensor, weight: torch.Tensor, offset: torch.Tensor, mask: torch.Tensor, bias: torch.Tensor, *window: int
) -> torch.Tensor:
    """`window`: strides, paddings, dilations, groups, groups of offsets."""
    result: torch.Tensor = torch.ops.torchvision.deform_conv2d(x, weight, offset, mask, bias, *window, mask.dim() == 4)
    return result


def _inputs(dtype: torch.dtype) -> Iterator[tuple[Any, ...]]:
    for window, items, masked in (
        ((1, 1, 0, 0, 1, 1, 1, 1), 2, True),
        ((2, 1, 1, 2, 1, 2, 2, 3), 3, True),
        ((1, 2, 1, 1, 2, 1, 3, 2), 1, False),
    ):
        high, wide = ((6 + 2 * window[2 + at] - 2 * window[4 + at] - 1) // window[at] + 1 for at in range(2))
        taps = 9 * window[7]
        yield (
            values((items, 6, 6, 6), dtype, 1.0),
            values((6, 6 // window[6], 3, 3), dtype, 1.0),
            values((items, 2 * taps, high, wide), dtype, 1.0),
            values((items, taps, high, wide) if masked else (items, 1), dtype, 1.0),
            values((6,), dtype, 1.0),
            *window,
        )


CASES = (
    KernelCall("torchvision.ops.deform_conv2d", _OPERATORS, _convolved, _inputs, FLOATING, gradients=(0, 1, 2, 3, 4)),
)


def _timed_images(elements: int) -> tuple[Any, ...]:
    """An image of 64 channels and as many rows as columns, with offsets near zero."""
    side = max(3, int((elements / 64) ** 0.5))
    x, offset = torch.randn(1, 64, side, side), torch.randn(1, 18, side, side)
    return x, torch.randn(64, 64, 3, 3), offset, torch.ones(1, 9, side, side), torch.zeros(64), 1, 1, 1, 1, 1, 1, 1, 1


WORKLOAD = Workload("torchvision::deform_conv2d", _convolved, _timed_images)
