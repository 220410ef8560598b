"""The call that is timed."""

from __future__ import annotations

import torch

from ..verification.workload import Workload

_SIDE = 32


def _matrices(elements: int) -> tuple[torch.Tensor]:
    """Many small ones."""
    return (torch.randn(max(1, elements // _SIDE**2), _SIDE, _SIDE),)


WORKLOAD = Workload("aten::linalg_eig", torch.linalg.eig, _matrices)
