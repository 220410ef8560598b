"""The calls that verify and time the family."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import torch

from ..verification.calls import Inputs, KernelCall
from ..verification.inputs import integers, rounded_once, values
from ..verification.workload import Workload

_FUNCTIONS = {1: torch.conv1d, 2: torch.conv2d, 3: torch.conv3d}
_TRANSPOSED = {1: torch.conv_transpose1d, 2: torch.conv_transpose2d, 3: torch.conv_transpose3d}
_SIZES = ((2, 4, 7), (1, 4, 6, 5), (2, 4, 4, 3, 5))
# Products of these numbers exceed 64 bits: sums wrap.
_LARGE = 2**40 + 7
# Strides, padding, dilation and groups.
_WINDOWS = ((1, 0, 1, 1), (2, 1, 1, 2), (1, 2, 2, 1), (3, 1, 2, 4))


def _whole(dimensions: int, transposed: bool) -> Inputs:
    def inputs(dtype: torch.dtype) -> Iterator[tuple[Any, ...]]:
        shape = _SIZES[dimensions - 1]
        for stride, padding, dilation, groups in _WINDOWS:
            channels = (4, 8 // groups) if transposed else (8, 4 // groups)
            weight = integers((*channels, *(2, 3, 2)[:dimensions]), -9, 9).to(dtype)
            extra = (stride - 1,) if transposed else ()
            order = (stride, padding, *extra, groups, dilation) if transposed else (stride, padding, dilation, groups)
            bias = None if stride > 2 else integers((8,), -9, 9).to(dtype)
            yield integers(shape, -9, 9).to(dtype) * _LARGE, weight * _LARGE, bias, *order

    return inputs


def _halves(dimensions: int) -> Inputs:
    def inputs(dtype: torch.dtype) -> Iterator[tuple[Any, ...]]:
        x, weight = values(_SIZES[dimensions - 1], dtype), values((4, 3, *(2, 3, 2)[:dimensions]), dtype)
        yield x, weight, values((3,), dtype), 2, 1, 1, 1, 1
        yield x, values((4, 2, *(2, 1, 2)[:dimensions]), dtype), None, 1, 0, 0, 2, 2

    return inputs


_WHOLE = tuple(
    KernelCall(
        f"nn.functional.conv{'_transpose' * transposed}{n}d",
        ("aten::_mps_convolution_transpose" if transposed else "aten::_mps_convolution",),
        functions[n],
        _whole(n, transposed),
        (torch.int64,),
        variant="whole",
    )
    for transposed, functions in ((False, _FUNCTIONS), (True, _TRANSPOSED))
    for n in functions
)
_HALF = tuple(
    KernelCall(
        f"nn.functional.conv_transpose{n}d",
        ("aten::_mps_convolution_transpose", "aten::mps_convolution_transpose_backward"),
        rounded_once(_TRANSPOSED[n]),
        _halves(n),
        dtypes,
        variant="half",
        gradients=(0, 1),
    )
    for n, dtypes in ((2, (torch.bfloat16,)), (3, (torch.float16, torch.bfloat16)))
)
CASES = _WHOLE + _HALF


def _image(elements: int) -> tuple[torch.Tensor, torch.Tensor]:
    side = max(4, math.isqrt(elements // 8))
    return torch.randint(-9, 9, (1, 8, side, side)), torch.randint(-9, 9, (8, 8, 3, 3))


WORKLOAD = Workload("aten::_mps_convolution", torch.conv2d, _image)
