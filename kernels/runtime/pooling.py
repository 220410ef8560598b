"""The geometry of pooling over depth, height and width as the Metal kernels read it."""

from __future__ import annotations

from collections.abc import Sequence

import torch

_LARGE_WINDOW = 256


def geometry3d(x: torch.Tensor, inputs: Sequence[int], outputs: Sequence[int]) -> list[int]:
    """`struct pool3d` of shared/windows.metal.

    `x`: the strided operand, (images, channels, depth, height, width) or without images.
    `inputs`, `outputs`: depth, height and width before and after pooling.
    """
    image_stride = x.stride(0) if x.dim() == 5 else 0
    channel = x.dim() - 4
    planes = x.shape[channel] * (x.shape[0] if x.dim() == 5 else 1)
    return [planes, x.shape[channel], *inputs, *outputs, image_stride, x.stride(channel), *x.stride()[-3:]]


def has_large_windows(inputs: Sequence[int], outputs: Sequence[int]) -> bool:
    """Whether a window holds so much that a group of threads should share it."""
    volume = 1
    for before, after in zip(inputs, outputs, strict=True):
        volume *= -(-before // after)
    return volume >= _LARGE_WINDOW


def check_pooled(x: torch.Tensor, output_size: Sequence[int], operator: str) -> None:
    """Raise RuntimeError with torch's texts for an input or an output size that cannot be pooled in 3 dimensions."""
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
