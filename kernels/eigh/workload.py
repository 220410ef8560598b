"""The call that is timed."""

from __future__ import annotations

import torch

from ..verification.workload import Workload


def _symmetric_matrices(elements: int) -> tuple[torch.Tensor]:
    """Matrices of 32 rows."""
    a = torch.randn(max(1, elements // 1024), 32, 32)
    return (a + a.mT,)


WORKLOAD = Workload("aten::_linalg_eigh.eigenvalues", torch.linalg.eigh, _symmetric_matrices)
