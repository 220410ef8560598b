"""The call that is timed."""

from __future__ import annotations

import torch

from ..verification.workload import Workload, rows_and_columns


def _labels(elements: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Up to four labels a row."""
    rows, classes = rows_and_columns(elements)
    labels = torch.full((rows, classes), -1)
    labels[:, : min(4, classes)] = torch.arange(min(4, classes))
    return torch.randn(rows, classes), labels


WORKLOAD = Workload("aten::multilabel_margin_loss_forward", torch.nn.functional.multilabel_margin_loss, _labels)
