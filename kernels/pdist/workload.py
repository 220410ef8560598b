"""The call that is timed."""

from __future__ import annotations

import math

import torch

from ..verification.workload import Workload


def _points(elements: int) -> tuple[torch.Tensor]:
    """So many points of 32 coordinates that their distances are about `elements`."""
    return (torch.randn(max(2, math.isqrt(2 * elements)), 32),)


WORKLOAD = Workload("aten::_pdist_forward", torch.nn.functional.pdist, _points, lambda n: 3.0 * 32 * n)
