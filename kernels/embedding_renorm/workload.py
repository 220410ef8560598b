"""The call that is timed."""

from __future__ import annotations

import torch

from ..verification.workload import Workload, rows_and_columns

WORKLOAD = Workload(
    "aten::embedding_renorm_",
    lambda weight, indices: torch.embedding_renorm_(weight, indices, 1.0, 2.0),
    lambda n: (torch.randn(rows_and_columns(n)), torch.arange(rows_and_columns(n)[0])),
)
