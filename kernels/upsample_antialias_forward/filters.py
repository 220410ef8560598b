"""Windows and weights for resampling bytes, rounded as on the CPU: computed on the host in float64."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import NamedTuple

import torch

from ..runtime.resampling import SUPPORT

# Products of a byte and a weight of 16 bits are summed in 32.
_MOST_PRECISION = 22
_LARGEST_WEIGHT = 1 << 15


class ByteWeights(NamedTuple):
    """The bytes that contribute to each output along one axis, and their weights.

    Attributes:
        windows: int32, for each output the start of its window and the number of its inputs.
        weights: int32, a row for each output.
        room: the length of a row.
        precision: a weight of one is 2^precision.
    """

    windows: torch.Tensor
    weights: torch.Tensor
    room: int
    precision: int


@lru_cache(maxsize=64)
def byte_weights(name: str, inputs: int, outputs: int, scale: float, device: torch.device) -> ByteWeights:
    """The weights of one axis, on the device. They are cached, because images have few sizes."""
    stretch = max(scale, 1.0)
    reach = SUPPORT[name] * stretch
    centers = scale * (torch.arange(outputs, dtype=torch.float64) + 0.5)
    starts = (centers - reach + 0.5).trunc().clamp(min=0)
    counts = (centers + reach + 0.5).trunc().clamp(max=inputs) - starts
    steps = torch.arange(int(counts.max()), dtype=torch.float64)
    weights = _FILTERS[name]((steps + (starts - centers + 0.5).unsqueeze(1)) / stretch)
    weights = weights.where(steps < counts.unsqueeze(1), 0.0)
    totals = weights.sum(1, keepdim=True)
    weights = torch.where(totals == 0.0, weights, weights / totals)
    return _rounded(starts, counts, weights, float(weights.max()), device)


@lru_cache(maxsize=64)
def clamped_byte_weights(
    align_corners: bool, inputs: int, outputs: int, scale: float, device: torch.device
) -> ByteWeights:
    """The same for bicubic resampling without antialiasing: four inputs, clamped to the ends."""
    places = torch.arange(outputs, dtype=torch.float64)
    centers = scale * places if align_corners else scale * (places + 0.5) - 0.5
    whole = centers.floor().clamp(max=inputs - 1)
    fractions = (centers - whole).clamp(0.0, 1.0)
    steps = torch.arange(-1.0, 3.0, dtype=torch.float64)
    seen = (whole.unsqueeze(1) + steps).clamp(0, inputs - 1)
    starts, counts = seen[:, 0], seen[:, -1] - seen[:, 0] + 1
    weights = torch.zeros(outputs, 4, dtype=torch.float64)
    shares, at, largest = _cubic(steps - fractions.unsqueeze(1), a=-0.75), (seen - seen[:, :1]).long(), 0.0
    for k in range(4):  # the CPU determines the largest weight while it adds up those at the ends
        weights.scatter_add_(1, at[:, k : k + 1], shares[:, k : k + 1])
        largest = max(largest, float(weights.max()))
    return _rounded(starts, counts, weights, largest, device)


def _rounded(
    starts: torch.Tensor, counts: torch.Tensor, weights: torch.Tensor, largest: float, device: torch.device
) -> ByteWeights:
    precision = _precision(largest)
    whole = (weights * 2**precision + torch.where(weights < 0, -0.5, 0.5)).trunc()
    windows = torch.stack([starts, counts], 1)
    return ByteWeights(windows.int().to(device), whole.int().to(device), weights.shape[1], precision)


def _precision(largest: float) -> int:
    """The most fraction bits that fit into a weight of 16 bits."""
    fits = (p for p in range(_MOST_PRECISION) if int(0.5 + largest * (1 << (p + 1))) >= _LARGEST_WEIGHT)
    return next(fits, _MOST_PRECISION)


def _linear(x: torch.Tensor) -> torch.Tensor:
    return (1.0 - x.abs()).clamp(min=0.0)


def _cubic(x: torch.Tensor, a: float = -0.5) -> torch.Tensor:
    x = x.abs()
    near, far = ((a + 2.0) * x - (a + 3.0)) * x * x + 1.0, (((x - 5.0) * x + 8.0) * x - 4.0) * a
    return torch.where(x < 1.0, near, far.where(x < 2.0, 0.0))


def _lanczos(x: torch.Tensor) -> torch.Tensor:
    product: torch.Tensor = torch.special.sinc(x) * torch.special.sinc(x / 3.0)
    return product.where((x >= -3.0) & (x < 3.0), 0.0)


_FILTERS: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {"linear": _linear, "cubic": _cubic, "lanczos": _lanczos}
