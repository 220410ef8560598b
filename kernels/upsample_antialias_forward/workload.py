"""The call that is timed."""

from __future__ import annotations

import math

import torch

from ..verification.workload import Workload


def _half_size(x: torch.Tensor) -> torch.Tensor:
    return torch.ops.aten._upsample_lanczos2d_aa(x, [x.shape[2] // 2, x.shape[3] // 2], False)  # type: ignore[no-any-return]


def _images(elements: int) -> tuple[torch.Tensor]:
    side = max(2, math.isqrt(elements // 3))
    return (torch.rand(1, 3, side, side).mul(256).to(torch.uint8),)


WORKLOAD = Workload("aten::_upsample_lanczos2d_aa", _half_size, _images)
