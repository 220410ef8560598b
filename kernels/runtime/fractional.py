"""The forward of fractional maximum pooling over two or three dimensions (shared/fractional.metal)."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from dataclasses import dataclass

import torch

from ...metal_limits import SIMD_WIDTH
from .layout import LARGEST_32_BIT
from .shader import METAL_TYPES, Shader

# Rows of outputs that a thread takes, where there are as many: it places their windows and finds their plane once.
_ROWS = 4
_GROUP = 256
_DEEPEST_GROUP = 64  # CUDA's limit for a group's third dimension


@dataclass(frozen=True)
class FractionalWindows:
    """Windows over planes of depth, height and width; in two dimensions the depths are 1.

    Attributes:
        inputs, outputs, sizes: depth, height and width of the input, the output and a window.
    """

    inputs: tuple[int, int, int]
    outputs: tuple[int, int, int]
    sizes: tuple[int, int, int]

    @classmethod
    def of(cls, x: torch.Tensor, outputs: Sequence[int], sizes: Sequence[int]) -> FractionalWindows:
        """Over the last dimensions of `x`, as many as `outputs` and `sizes` have: two or three."""
        return cls(_in_three(x.shape[-len(outputs) :]), _in_three(outputs), _in_three(sizes))

    @property
    def alpha(self) -> list[float]:
        """The distance of two windows in each dimension, all computed in float32 as the CPU does."""
        lengths = zip(self.inputs, self.outputs, self.sizes, strict=True)
        return [
            _float32(_float32(before - size) / _float32(after - 1)) if after > 1 else 0.0
            for before, after, size in lengths
        ]

    def threads(self, planes: int, rows: int) -> tuple[int, int, int]:
        """The grid for so many planes: a thread takes `rows` rows of outputs."""
        depth, height, width = self.outputs
        return width, -(-height // rows), planes * depth


def group_of(threads: tuple[int, int, int]) -> tuple[int, int, int]:
    """A group for a grid: lanes along the width, and groups of a dimension are as equal as they can be.

    Outputs of a few columns would leave the other lanes of a group of fixed width idle.
    """
    width = _share(threads[0], SIMD_WIDTH)
    height = _share(threads[1], _GROUP // width)
    return width, height, _share(threads[2], min(_GROUP // (width * height), _DEEPEST_GROUP))


def launch_fractional(
    shader: Shader,
    name: str,
    outputs: tuple[torch.Tensor, torch.Tensor],
    x: torch.Tensor,
    samples: torch.Tensor,
    windows: FractionalWindows,
) -> None:
    """Run the forward `name` of a family.

    `outputs`: contiguous maxima in the dtype of `x`, and their int64 places in a contiguous plane. `x`: (images,
    channels) or channels, then the pooled dimensions, of any strides. `samples`: (images or more, channels, pooled
    dimensions), of any strides.
    """
    values, places = outputs
    pooled = samples.shape[-1]
    channel = x.dim() - pooled - 1
    planes = values.numel() // (windows.outputs[0] * windows.outputs[1] * windows.outputs[2])
    channels, image_stride = x.shape[channel], x.stride(0) if channel else 0
    if image_stride == channels * x.stride(channel):
        channels = planes  # further planes at the same distance: none has to divide to find its image
    geometry = [*windows.inputs, *windows.outputs, *windows.sizes, channels, image_stride, x.stride(channel)]
    strides = [*(0,) * (3 - pooled), *x.stride()[-pooled:]]
    reach = 1 + sum((size - 1) * stride for size, stride in zip(x.shape, x.stride(), strict=True))
    plane = windows.inputs[0] * windows.inputs[1] * windows.inputs[2]
    narrow = max(values.numel(), plane, reach) <= LARGEST_32_BIT
    rows = _ROWS if windows.outputs[1] >= _ROWS else 1
    form = f"{'_rows' if rows > 1 else ''}{'_32' if narrow else ''}"
    kernel = shader.kernel(f"{name}{form}_{METAL_TYPES[x.dtype]}", x.device)
    threads = windows.threads(planes, rows)
    operands = (values, places, x, samples.contiguous(), [*geometry, *strides], windows.alpha)
    casts = {4: "int32"} if narrow else None
    kernel(*operands, threads=threads, group_size=group_of(threads), arg_casts=casts)


def _in_three(lengths: Sequence[int]) -> tuple[int, int, int]:
    depth, height, width = lengths if len(lengths) == 3 else (1, *lengths)
    return depth, height, width


def _share(count: int, most: int) -> int:
    """How many of `count` each of the fewest groups of at most `most` takes."""
    groups = -(-count // most)
    return -(-count // groups)


def _float32(number: float) -> float:
    return ctypes.c_float(number).value
