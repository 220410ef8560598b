"""The call that is timed."""

from __future__ import annotations

import math

import torch

from ..verification.workload import Workload


def _matrices(elements: int) -> tuple[torch.Tensor, torch.Tensor]:
    side = max(1, math.isqrt(elements))
    left, right = torch.randint(-128, 128, (2, side, side), dtype=torch.int8)
    return left, right


WORKLOAD = Workload("aten::_int_mm", torch._int_mm, _matrices, lambda n: 2.0 * n**1.5)
