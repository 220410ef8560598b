"""The call that is timed."""

from __future__ import annotations

import torch

from ..verification.workload import Workload

_STEPS, _LABELS, _TARGET = 64, 32, 20


def _batch(elements: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Log probabilities of 64 steps and 32 labels, and targets of 20."""
    items = max(1, elements // (_STEPS * _LABELS))
    return torch.randn(_STEPS, items, _LABELS).log_softmax(-1), torch.randint(1, _LABELS, (items, _TARGET))


def _loss(log_probs: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
    items = len(targets)
    return torch.ctc_loss(log_probs, targets, (_STEPS,) * items, (_TARGET,) * items, 0, 1)


WORKLOAD = Workload("aten::_ctc_loss", _loss, _batch)
