"""The call that is timed."""

from __future__ import annotations

import torch

from ..verification.workload import Workload, rows_and_columns


def _targets(elements: int) -> tuple[torch.Tensor, torch.Tensor]:
    rows, classes = rows_and_columns(elements)
    return torch.randn(rows, classes), torch.randint(0, classes, (rows,))


WORKLOAD = Workload("aten::multi_margin_loss", torch.nn.functional.multi_margin_loss, _targets)
