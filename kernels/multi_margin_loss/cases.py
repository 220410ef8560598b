"""The calls that verify and time the family."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch

from ..verification.calls import KernelCall, RefusedCall
from ..verification.inputs import integers, rounded_once, values
from ..verification.workload import Workload, rows_and_columns


def _scores_and_targets(dtype: torch.dtype) -> Iterator[tuple[Any, ...]]:
    for rows, classes in ((5, 7), (3, 300)):
        x, target = values((rows, classes), dtype), integers((rows,), 0, classes)
        for reduction in ("none", "mean", "sum"):
            yield x, target, 1, 0.7, None, reduction
            yield x, target, 2, 1.0, values((classes,), dtype).abs(), reduction
    yield values((1030, 40), dtype), integers((1030,), 0, 40), 1, 1.0, None, "none"  # few threads for each of many rows
    yield values((1, 4200), dtype), integers((1,), 0, 4200), 1, 1.0, None, "none"  # more than a group loads at a time
    yield values((7,), dtype), torch.tensor(3), 1, 1.0, None, "none"
    yield values((0, 7), dtype), integers((0,), 0, 7), 1, 1.0, None, "sum"


def _multi_margin(x: torch.Tensor, target: torch.Tensor, p: int, margin: float, weight: Any, how: str) -> torch.Tensor:
    return torch.nn.functional.multi_margin_loss(x, target, p, margin, weight, reduction=how)


CASES = (
    KernelCall(
        "nn.functional.multi_margin_loss",
        ("aten::multi_margin_loss", "aten::multi_margin_loss_backward"),
        rounded_once(_multi_margin),
        _scores_and_targets,
        gradients=(0,),
    ),
)


def refused() -> Iterator[RefusedCall]:
    """Weights of a wrong dtype."""
    arguments = (values((4, 5), torch.float32), torch.tensor([1, 2, 0, 1]), 1, 1.0, torch.arange(5))
    yield RefusedCall("weights in int64", torch.ops.aten.multi_margin_loss, arguments)


def _targets(elements: int) -> tuple[torch.Tensor, torch.Tensor]:
    rows, classes = rows_and_columns(elements)
    return torch.randn(rows, classes), torch.randint(0, classes, (rows,))


WORKLOAD = Workload("aten::multi_margin_loss", torch.nn.functional.multi_margin_loss, _targets)
