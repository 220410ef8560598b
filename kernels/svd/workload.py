"""The call that is timed."""

from __future__ import annotations

import torch

from ..verification.workload import Workload


def _matrices(elements: int) -> tuple[torch.Tensor]:
    """Matrices of 32 rows."""
    return (torch.randn(max(1, elements // 1024), 32, 32),)


WORKLOAD = Workload("aten::_linalg_svd.U", torch.linalg.svd, _matrices)
