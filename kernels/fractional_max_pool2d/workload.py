"""The call that is timed."""

from __future__ import annotations

import math

import torch

from ..verification.workload import Workload


def _image(elements: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Sixteen channels, and where their windows are."""
    side = max(8, math.isqrt(elements // 16))
    return torch.randn(1, 16, side, side), torch.rand(1, 16, 2)


def _half_size(x: torch.Tensor, samples: torch.Tensor) -> torch.Tensor:
    size = (x.shape[-2] // 2, x.shape[-1] // 2)
    return torch.nn.functional.fractional_max_pool2d(x, 2, size, _random_samples=samples)


WORKLOAD = Workload("aten::fractional_max_pool2d.output", _half_size, _image)
