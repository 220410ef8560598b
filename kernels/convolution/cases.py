"""The calls that verify and time the family."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import torch

from ..verification.calls import Inputs, KernelCall
from ..verification.inputs import integers, rounded_once, values
from ..verification.workload import Workload

_aten = torch.ops.aten
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


def _slow_conv2d(x: torch.Tensor, weight: torch.Tensor, *arguments: Any) -> torch.Tensor:
    """Contiguous operands, because the CPU's gradient of the weight is wrong for others."""
    result: torch.Tensor = _aten.thnn_conv2d(x.contiguous(), weight.contiguous(), *arguments)
    return result


def _to_output(operator: Any) -> Callable[..., torch.Tensor]:
    return lambda x, *arguments: operator(x, *arguments, output=torch.empty(0, dtype=x.dtype, device=x.device))


def _slow(dimensions: int, *, flat: bool = False) -> Inputs:
    def inputs(dtype: torch.dtype) -> Iterator[tuple[Any, ...]]:
        kernel = (2, 3, 2)[:dimensions]
        for stride, padding in ((1, 0), (2, 1)):
            weight = values((3, 4, *kernel), dtype)
            weight = weight.reshape(3, -1) if flat else weight
            bias = None if padding else values((3,), dtype)
            x = values(_SIZES[dimensions - 1], dtype)
            yield x, weight, kernel, bias, (stride,) * dimensions, (padding,) * dimensions

    return inputs


# In integers sums wrap, of any width.
_SLOW_DTYPES = (torch.float32, torch.int64, torch.int8)
_SLOW = (
    KernelCall(
        "_slow_conv2d_forward",
        ("aten::_slow_conv2d_forward", "aten::_slow_conv2d_backward"),
        _slow_conv2d,
        _slow(2),
        (torch.float32,),
        gradients=(0, 1),
    ),
    KernelCall(
        "_slow_conv2d_forward",
        ("aten::_slow_conv2d_forward",),
        _slow_conv2d,
        _slow(2, flat=True),
        (torch.float32,),
        variant="matrix",
    ),
    *(
        KernelCall(
            name, (f"aten::{name}",), _to_output(getattr(_aten, name).output), _slow(n), _SLOW_DTYPES, variant="output"
        )
        for n, name in ((2, "_slow_conv2d_forward"), (3, "slow_conv3d_forward"))
    ),
    KernelCall(
        "slow_conv3d_forward",
        ("aten::slow_conv3d_forward",),
        _aten.slow_conv3d,
        _slow(3),
        (torch.float32,),
        gradients=(0, 1),
    ),
)
CASES = _WHOLE + _HALF + _SLOW


def _image(elements: int) -> tuple[torch.Tensor, torch.Tensor]:
    side = max(4, math.isqrt(elements // 8))
    return torch.randint(-9, 9, (1, 8, side, side)), torch.randint(-9, 9, (8, 8, 3, 3))


WORKLOAD = Workload("aten::_mps_convolution", torch.conv2d, _image)
