"""The call that is timed."""

from __future__ import annotations

import torch

from ..verification.workload import Workload, rows_and_columns


def _matrix(elements: int) -> tuple[torch.Tensor]:
    return (torch.randn(rows_and_columns(elements)),)


def _of_rows(x: torch.Tensor) -> torch.Tensor:
    return torch.var(x, 1, out=torch.empty(x.shape[0], device=x.device))


WORKLOAD = Workload("aten::var.correction_out", _of_rows, _matrix)
