"""The call that is timed."""

from __future__ import annotations

import torch

from ..verification.workload import Workload, volume


def _volume(elements: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Sixteen channels, and where their windows are."""
    return *volume(elements), torch.rand(1, 16, 3)


def _half_size(x: torch.Tensor, samples: torch.Tensor) -> torch.Tensor:
    size = tuple(side // 2 for side in x.shape[-3:])
    return torch.nn.functional.fractional_max_pool3d(x, 2, size, _random_samples=samples)


WORKLOAD = Workload("aten::fractional_max_pool3d.output", _half_size, _volume)
