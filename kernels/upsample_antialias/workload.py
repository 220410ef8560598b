"""The call that is timed."""

from __future__ import annotations

import math

import torch

from ..verification.workload import Workload


def _half_size(dy: torch.Tensor) -> torch.Tensor:
    sides = [2 * side for side in dy.shape[2:]]
    backward = torch.ops.aten._upsample_bilinear2d_aa_backward
    return backward(dy, dy.shape[2:], (*dy.shape[:2], *sides), False)  # type: ignore[no-any-return]


def _image(elements: int) -> tuple[torch.Tensor]:
    """Three channels at half the size of the input."""
    side = max(1, math.isqrt(elements // 12))
    return (torch.randn(1, 3, side, side),)


WORKLOAD = Workload("aten::_upsample_bilinear2d_aa_backward.grad_input", _half_size, _image)
