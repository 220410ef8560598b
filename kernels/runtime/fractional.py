"""Fractional maximum pooling over two or three dimensions, and its backward (shared/fractional.metal)."""

from __future__ import annotations

import ctypes
import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch

from ...metal_limits import SIMD_WIDTH
from . import rows as limits
from .determinism import alert_not_deterministic
from .layout import LARGEST_32_BIT, launch_elements
from .outputs import contiguous_output, finish
from .pooling import check_fractional_samples, check_pooled_gradient
from .rows import fill_on_cpu, is_too_long, short_launches
from .shader import METAL_TYPES, Shader
from .signatures import planned

# Rows of outputs that a thread computes, if there are enough: it places their windows and finds their plane once.
_ROWS = 4
_GROUP = 256
# What an element of a window costs, for the limits of a launch.
_STEPS_OF_ELEMENT = 2
_PRODUCTS_OF_ELEMENT = 4
_DEEPEST_GROUP = 64  # CUDA's limit for a group's third dimension


@dataclass(frozen=True)
class FractionalWindows:
    """Windows over planes of depth, height and width; in two dimensions, all depths are 1.

    Attributes:
        inputs, outputs, sizes: depth, height and width of the input, the output and a window.
    """

    inputs: tuple[int, int, int]
    outputs: tuple[int, int, int]
    sizes: tuple[int, int, int]

    @classmethod
    def of(cls, x: torch.Tensor, outputs: Sequence[int], sizes: Sequence[int]) -> FractionalWindows:
        """The windows over the last dimensions of `x`, as many as `outputs` and `sizes` have: two or three."""
        return cls(_as_3d(x.shape[-len(outputs) :]), _as_3d(outputs), _as_3d(sizes))

    @property
    def alpha(self) -> list[float]:
        """The distance between windows in each dimension, computed in float32 as on the CPU."""
        lengths = zip(self.inputs, self.outputs, self.sizes, strict=True)
        return [
            _float32(_float32(before - size) / _float32(after - 1)) if after > 1 else 0.0
            for before, after, size in lengths
        ]

    def threads(self, planes: int, rows: int) -> tuple[int, int, int]:
        """The grid for this many planes; each thread computes `rows` rows of outputs."""
        depth, height, width = self.outputs
        return width, -(-height // rows), planes * depth


def group_of(threads: tuple[int, int, int]) -> tuple[int, int, int]:
    """The threadgroup for a grid: its lanes are along the width, and each dimension is divided as evenly as possible.

    A group of fixed width would have idle lanes for outputs with few columns.
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

    `outputs`: contiguous maxima in the dtype of `x`, and their int64 positions in a contiguous plane. `x`: (images,
    channels) or channels, then the pooled dimensions, of any strides. `samples`: (images or more, channels, pooled
    dimensions), of any strides.
    """
    values, places = outputs
    pooled = samples.shape[-1]
    channel = x.dim() - pooled - 1
    planes = values.numel() // (windows.outputs[0] * windows.outputs[1] * windows.outputs[2])
    channels, image_stride = x.shape[channel], x.stride(0) if channel else 0
    if image_stride == channels * x.stride(channel):
        channels = planes  # all planes have one distance: no thread has to divide to find its image
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


def pool(
    shader: Shader,
    name: str,
    x: torch.Tensor,
    kernel_size: Sequence[int],
    output_size: Sequence[int],
    samples: torch.Tensor,
    outputs: tuple[torch.Tensor, torch.Tensor],
) -> tuple[torch.Tensor, torch.Tensor]:
    """The forward `name`: maxima and int64 positions in each plane, in `outputs` of the right shape and any strides."""
    pooled = len(output_size)
    check_fractional_samples(x, samples, pooled, name)
    if not outputs[0].numel():
        return outputs
    values, positions = (contiguous_output(output) for output in outputs)
    volume, planes = math.prod(kernel_size), math.prod(x.shape[:-pooled])
    products = _PRODUCTS_OF_ELEMENT * volume * math.prod(output_size)
    steps = max(_STEPS_OF_ELEMENT * volume, limits.MOST_STEPS * products // limits.MOST_PRODUCTS)
    if is_too_long(name, steps, f"windows of {volume} elements"):
        operands = (x, kernel_size, output_size, samples)
        fill_on_cpu((values, positions), getattr(torch.ops.aten, name), *operands, dtype=torch.float32)
        return finish(outputs[0], values), finish(outputs[1], positions)
    windows = FractionalWindows.of(x, output_size, kernel_size)
    for part in short_launches(planes, products):
        if part.stop - part.start == planes:
            launch_fractional(shader, name, (values, positions), x, samples, windows)
        else:
            maxima, places, given = (y.reshape(planes, *y.shape[-pooled:])[part] for y in (values, positions, x))
            launch_fractional(shader, name, (maxima, places), given, samples.reshape(1, -1, pooled)[:, part], windows)
    return finish(outputs[0], values), finish(outputs[1], positions)


def pool_backward(
    shader: Shader,
    name: str,
    grad_output: torch.Tensor,
    x: torch.Tensor,
    output_size: Sequence[int],
    indices: torch.Tensor,
    grad_input: torch.Tensor,
) -> torch.Tensor:
    """The backward `name`, sums in float32. Raises RuntimeError for a gradient or positions that do not match `x`."""
    sizes = planned(_gradient_sizes, (grad_output, x, indices), tuple(output_size), name)
    alert_not_deterministic(name)  # overlapping windows use atomic additions
    is_result = grad_input.dtype == torch.float32 and grad_input.is_contiguous()
    gradient = grad_input if is_result else torch.empty(x.shape, dtype=torch.float32, device=x.device)
    gradient.zero_()
    if sizes[-1]:
        kernel = shader.kernel(f"{name}_{METAL_TYPES[x.dtype]}", x.device)
        operands = (gradient, grad_output.contiguous(), indices.contiguous(), sizes)
        launch_elements(kernel, sizes[-1], *operands, reports=True)
    return grad_input if is_result else grad_input.copy_(gradient)


def _gradient_sizes(
    grad_output: torch.Tensor, x: torch.Tensor, indices: torch.Tensor, output_size: Sequence[int], operator: str
) -> list[int]:
    """The windows and the inputs of a plane, and all windows."""
    check_pooled_gradient(grad_output, x, output_size, indices, operator)
    return [math.prod(output_size), math.prod(x.shape[-len(output_size) :]), grad_output.numel()]


def _as_3d(lengths: Sequence[int]) -> tuple[int, int, int]:
    depth, height, width = lengths if len(lengths) == 3 else (1, *lengths)
    return depth, height, width


def _share(count: int, most: int) -> int:
    """The group size that divides `count` into the fewest groups of at most `most`."""
    groups = -(-count // most)
    return -(-count // groups)


def _float32(number: float) -> float:
    return ctypes.c_float(number).value
