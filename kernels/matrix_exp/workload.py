"""The call that is timed."""

from __future__ import annotations

import math

import torch

from ..verification.workload import Workload


def _matrix(elements: int) -> tuple[torch.Tensor]:
    """One of norm about 4: it is squared once or twice."""
    side = max(2, math.isqrt(elements))
    return (torch.randn(side, side) * 4 / side,)


WORKLOAD = Workload("aten::linalg_matrix_exp", torch.linalg.matrix_exp, _matrix)
