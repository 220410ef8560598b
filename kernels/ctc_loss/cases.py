"""The calls that verify and time the family."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch

from ...audit.model.case import Case
from ..verification.calls import KernelCall
from ..verification.inputs import values
from ..verification.workload import Workload

_aten = torch.ops.aten
_PADDED = torch.tensor([[1, 2, 2], [3, 3, 1], [4, 1, 2]])
_JOINED = torch.tensor([1, 2, 2, 3, 4, 1])


def _batches(dtype: torch.dtype) -> Iterator[tuple[Any, ...]]:
    """Log probabilities, targets, their lengths, and the blank; with repeated labels and empty targets."""
    log_probs = values((7, 3, 5), dtype).log_softmax(-1)
    yield log_probs, _PADDED, [7, 5, 6], [3, 1, 0], 0
    yield log_probs, _PADDED.int(), [7, 6, 7], [2, 3, 3], 0
    yield log_probs, _JOINED, [7, 5, 6], [3, 1, 2], 0
    yield log_probs, _JOINED - 1, [7, 5, 7], [3, 1, 2], 4
    many = torch.arange(1, 41).remainder(9).add(1)[None]
    yield values((90, 1, 11), dtype).log_softmax(-1), many, [90], [40], 0


def _loss(log_probs: torch.Tensor, targets: torch.Tensor, steps: list[int], lengths: list[int], blank: int) -> Any:
    """The loss without the forward variables, some of which the CPU leaves uninitialised."""
    return _aten._ctc_loss(log_probs, targets, steps, lengths, blank)[0]


def _loss_of_tensors(
    log_probs: torch.Tensor, targets: torch.Tensor, steps: list[int], lengths: list[int], blank: int
) -> Any:
    return _aten._ctc_loss.Tensor(log_probs, targets, torch.tensor(steps), torch.tensor(lengths), blank)[0]


def _mean(log_probs: torch.Tensor, targets: torch.Tensor, steps: list[int], lengths: list[int], blank: int) -> Any:
    return torch.ctc_loss(log_probs, targets, steps, lengths, blank, 1)


def _impossible(dtype: torch.dtype) -> Iterator[tuple[Any, ...]]:
    """The first item has fewer steps than its target needs, and the second one has none."""
    log_probs = values((7, 3, 5), dtype).log_softmax(-1)
    yield log_probs, _PADDED, [3, 0, 6], [3, 0, 2], True
    yield log_probs, _PADDED, [2, 0, 6], [3, 1, 2], True
    yield log_probs, _PADDED, [2, 4, 6], [3, 1, 2], False


def _with_impossible_ones(
    log_probs: torch.Tensor, targets: torch.Tensor, steps: list[int], lengths: list[int], forgives: bool
) -> Any:
    return _aten._ctc_loss(log_probs, targets, steps, lengths, 0, forgives)[0]


def undefined(case: Case) -> str:
    """Why a recorded call has no defined result."""
    return "the CPU leaves a part of log_alpha uninitialised"


_BOTH = ("aten::_ctc_loss", "aten::_ctc_loss_backward")
_FLOAT = (torch.float32,)

CASES = (
    KernelCall("_ctc_loss", _BOTH, _loss, _batches, _FLOAT, gradients=(0,)),
    KernelCall("_ctc_loss", _BOTH, _loss_of_tensors, _batches, _FLOAT, variant="lengths in tensors", gradients=(0,)),
    KernelCall("ctc_loss", _BOTH, _mean, _batches, _FLOAT, gradients=(0,)),
    KernelCall("_ctc_loss", _BOTH, _with_impossible_ones, _impossible, _FLOAT, variant="impossible", gradients=(0,)),
)


_STEPS, _LABELS, _TARGET = 64, 32, 20


def _batch(elements: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Log probabilities with 64 steps and 32 labels, and targets of length 20."""
    items = max(1, elements // (_STEPS * _LABELS))
    return torch.randn(_STEPS, items, _LABELS).log_softmax(-1), torch.randint(1, _LABELS, (items, _TARGET))


def _timed_loss(log_probs: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
    items = len(targets)
    return torch.ctc_loss(log_probs, targets, (_STEPS,) * items, (_TARGET,) * items, 0, 1)


WORKLOAD = Workload("aten::_ctc_loss", _timed_loss, _batch)
