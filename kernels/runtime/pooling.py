"""Pooling over depth, height and width: the geometry in the layout of the Metal kernels, and checks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import torch

from . import rows
from .layout import launch_elements
from .operands import require_device, require_scalar_type
from .rows import fill_on_cpu, is_too_long, launch_rows
from .shader import METAL_TYPES, Shader

_LARGE_WINDOW = 256
_GROUP = 256  # of the Metal kernels for large windows


def geometry3d(x: torch.Tensor, inputs: Sequence[int], outputs: Sequence[int]) -> list[int]:
    """The numbers of `struct pool3d` of shared/windows.metal.

    `x`: the strided operand, (images, channels, depth, height, width) or without images.
    `inputs`, `outputs`: depth, height and width before and after pooling.
    """
    shape, strides = x.shape, x.stride()
    if len(shape) == 5:
        return [shape[0] * shape[1], shape[1], *inputs, *outputs, *strides]
    return [shape[0], shape[0], *inputs, *outputs, 0, *strides]


def _window_volume(inputs: Sequence[int], outputs: Sequence[int]) -> int:
    """The number of inputs per window, rounded up in each dimension."""
    volume = 1
    for before, after in zip(inputs, outputs, strict=True):
        volume *= -(-before // after)
    return volume


class AdaptiveWindows(NamedTuple):
    """The windows of adaptive pooling, a contiguous result, the number of inputs per window, and `struct pool3d`."""

    shape: Sequence[int]
    strides: Sequence[int]
    volume: int
    geometry: list[int]


def windows_of(x: torch.Tensor, output_size: Sequence[int], operator: str) -> AdaptiveWindows:
    """The windows of a checked input."""
    check_pooled(x, output_size, operator)
    inputs, shape = x.shape[-3:], (*x.shape[:-3], *output_size)
    strides = torch.empty(shape, device="meta").stride()
    volume = _window_volume(inputs, output_size) if 0 not in output_size else 0
    return AdaptiveWindows(shape, strides, volume, geometry3d(x, inputs, output_size))


def launch_windows(
    shader: Shader, name: str, outputs: Sequence[torch.Tensor], x: torch.Tensor, of_inputs: AdaptiveWindows
) -> None:
    """Run the forward `name` of adaptive pooling, with one thread per window, or one threadgroup per large window.

    For the largest windows, the operator of this name runs on the CPU.
    """
    shape, _, volume, geometry = of_inputs
    windows, suffix, operands = outputs[0].numel(), METAL_TYPES[x.dtype], (*outputs, x, geometry)
    if volume < _LARGE_WINDOW:
        launch_elements(shader.kernel(f"{name}_{suffix}", x.device), windows, *operands)
    elif is_too_long(name, volume // _GROUP, f"windows of {volume} elements"):
        fill_on_cpu(outputs, getattr(torch.ops.aten, name), x, shape[-3:])
    else:
        launch_rows(shader.kernel(f"{name}_large_{suffix}", x.device), windows, _GROUP, *operands)


def are_too_many(operator: str, grad_output: torch.Tensor, x: torch.Tensor) -> bool:
    """Whether so many windows of 3-dimensional pooling contain an element of `x` that one thread cannot add them up."""
    if grad_output.numel() <= rows.MOST_STEPS:
        return False
    windows = _window_volume(grad_output.shape[-3:], x.shape[-3:])
    return is_too_long(operator, windows, f"{windows} windows over one element")


def check_pooled(x: torch.Tensor, output_size: Sequence[int], operator: str) -> None:
    """Raise RuntimeError with torch's texts for an input or an output size that 3-dimensional pooling refuses."""
    if len(output_size) != 3:
        raise RuntimeError(f"{operator}: internal error: output_size.size() must be 3")
    for i in range(1, x.dim()):
        if x.shape[i] == 0:
            raise RuntimeError(
                f"{operator}(): Expected input to have non-zero size for non-batch dimensions, but input has sizes "
                f"{list(x.shape)} with dimension {i} being empty"
            )
    if x.dim() not in (4, 5):
        raise RuntimeError(f"{operator}(): Expected 4D or 5D tensor, but got {list(x.shape)}")


def check_fractional_samples(x: torch.Tensor, samples: torch.Tensor, pooled: int, operator: str) -> None:
    """Raise RuntimeError with the CPU's texts for random samples of a wrong shape or dtype.

    `x`: (images, channels) or channels, then the `pooled` dimensions. `samples`: (images or more, channels, `pooled`);
    samples for too few planes would be read out of bounds.
    """
    require_device(x, {"random_samples": samples}, operator)
    images, channels = (1, x.shape[0]) if x.dim() == pooled + 1 else x.shape[:2]
    if samples.dtype != x.dtype:
        raise RuntimeError("Expect _random_samples to have the same dtype as input")
    if samples.dim() != 3:
        raise RuntimeError(f"Expect _random_samples to have 3 dimensions, got {samples.dim()}")
    if samples.shape[0] < images:
        raise RuntimeError("Expect _random_samples.size(0) no less then input batch size.")
    if samples.shape[1] != channels:
        raise RuntimeError("Expect _random_samples.size(1) equals to input channel size.")
    if samples.shape[2] != pooled:
        raise RuntimeError(f"Expect _random_samples.size(2) equals to {pooled}; got {samples.shape[2]}.")


def check_pooled_gradient(
    grad_output: torch.Tensor, x: torch.Tensor, output_size: Sequence[int], indices: torch.Tensor, operator: str
) -> None:
    """Raise RuntimeError for a gradient or positions of maxima that do not match the pooled input.

    `x`: planes with as many dimensions as `output_size`. `grad_output`, `indices`: the planes of `x` with the output's
    size, in the dtype of `x` and int64.
    """
    require_device(x, {"grad_output": grad_output, "indices": indices}, operator)
    require_scalar_type(grad_output, x.dtype)
    pooled = len(output_size)
    shape = (*tuple(x.shape)[:-pooled], *output_size)  # a slice of a torch.Size takes three times as long
    if grad_output.shape != shape:
        raise RuntimeError(
            f"{operator}(): gradOutput sizes unexpected: {list(grad_output.shape)} where {list(shape)} are expected"
        )
    require_scalar_type(indices, torch.int64)
    if indices.shape != shape:
        raise RuntimeError(
            f"{operator}(): indices sizes unexpected: {list(indices.shape)} where {list(shape)} are expected"
        )
