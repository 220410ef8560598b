"""The call that is timed."""

from __future__ import annotations

import math

import torch

from ..verification.workload import Workload


def _image(elements: int) -> tuple[torch.Tensor, torch.Tensor]:
    side = max(4, math.isqrt(elements // 8))
    return torch.randint(-9, 9, (1, 8, side, side)), torch.randint(-9, 9, (8, 8, 3, 3))


WORKLOAD = Workload("aten::_mps_convolution", torch.conv2d, _image)
