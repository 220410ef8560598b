"""The calls that verify and time the family."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch

from ..verification.calls import KernelCall, RefusedCall
from ..verification.inputs import rounded_once, values
from ..verification.workload import Workload, rows_and_columns


def _scores_and_labels(dtype: torch.dtype) -> Iterator[tuple[Any, ...]]:
    for rows, classes in ((5, 7), (3, 300)):
        target = torch.full((rows, classes), -1)
        for row in range(rows):
            count = (2 * row) % min(classes, 9)
            target[row, :count] = torch.randperm(classes, generator=torch.Generator().manual_seed(row))[:count]
        for reduction in ("none", "mean", "sum"):
            yield values((rows, classes), dtype), target, reduction
    yield values((4,), dtype), torch.tensor([2, 2, -1, 0]), "mean"
    yield values((1030, 40), dtype), torch.tensor([3, 0, 39, -1] * 10).expand(1030, 40).clone(), "none"
    yield values((2, 90), dtype), torch.arange(90).roll(7).expand(2, 90).clone(), "none"  # more labels than are kept
    yield values((2, 90), dtype), torch.tensor([*range(5, 85), -1, *[0] * 9]).expand(2, 90).clone(), "none"


def _multilabel(x: torch.Tensor, target: torch.Tensor, how: str) -> torch.Tensor:
    return torch.nn.functional.multilabel_margin_loss(x, target, reduction=how)


CASES = (
    KernelCall(
        "nn.functional.multilabel_margin_loss",
        ("aten::multilabel_margin_loss_forward", "aten::multilabel_margin_loss_backward"),
        rounded_once(_multilabel),
        _scores_and_labels,
        gradients=(0,),
    ),
)


def refused() -> Iterator[RefusedCall]:
    """Wrong marks and gradients."""
    aten = torch.ops.aten
    rows, labels = values((4, 5), torch.float32), torch.tensor([[1, 2, -1, 0, 0]] * 4)
    losses, marks = aten.multilabel_margin_loss_forward(rows, labels, 0)
    for title, gradient, is_target in (
        ("marks in int8", losses, marks.char()),
        ("one gradient for four rows", losses[:1], marks),
        ("gradients in half", losses.half(), marks),
    ):
        yield RefusedCall(title, aten.multilabel_margin_loss_backward, (gradient, rows, labels, 0, is_target))


def _labels(elements: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Up to four labels per row."""
    rows, classes = rows_and_columns(elements)
    labels = torch.full((rows, classes), -1)
    labels[:, : min(4, classes)] = torch.arange(min(4, classes))
    return torch.randn(rows, classes), labels


WORKLOAD = Workload("aten::multilabel_margin_loss_forward", torch.nn.functional.multilabel_margin_loss, _labels)
