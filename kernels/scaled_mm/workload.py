"""The call that is timed."""

from __future__ import annotations

import math

import torch

from ..verification.workload import Workload


def _product(a: torch.Tensor, b: torch.Tensor, scale: torch.Tensor) -> torch.Tensor:
    operands = (a.view(torch.float8_e4m3fn), b.view(torch.float8_e4m3fn).t())
    return torch._scaled_mm(*operands, scale, scale, out_dtype=torch.bfloat16)


def _matrices(elements: int) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    side = max(16, math.isqrt(elements) // 16 * 16)
    left, right = (torch.randn(side, side).to(torch.float8_e4m3fn).view(torch.uint8) for _ in range(2))
    return left, right, torch.tensor(1.0)


WORKLOAD = Workload("aten::_scaled_mm", _product, _matrices, lambda n: 2.0 * n**1.5)
