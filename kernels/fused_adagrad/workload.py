"""The call that is timed."""

from __future__ import annotations

from typing import Any

import torch

from ..verification.workload import Workload


def _one_parameter(elements: int) -> tuple[list[torch.Tensor], ...]:
    """The parameter, its gradient, its sum and its step, each in a list."""
    return [torch.randn(elements)], [torch.randn(elements)], [torch.rand(elements)], [torch.ones(())]


def _adagrad(parameters: Any, gradients: Any, sums: Any, steps: Any) -> None:
    torch._fused_adagrad_(
        parameters, gradients, sums, steps, lr=0.1, lr_decay=0.0, weight_decay=0.0, eps=1e-8, maximize=False
    )


WORKLOAD = Workload("aten::_fused_adagrad_", _adagrad, _one_parameter)
