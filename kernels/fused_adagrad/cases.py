"""The calls that verify and time the family."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch

from ...audit.model.case import Case
from ..verification.calls import KernelCall
from ..verification.inputs import values
from ..verification.workload import Workload


def _lists(dtype: torch.dtype) -> Iterator[tuple[Any, ...]]:
    for rate, decay, weight_decay, maximize in (
        (0.1, 0.0, 0.0, False),
        (0.1, 0.2, 0.1, True),
        (torch.tensor(0.1), 0.2, 0.1, False),
    ):
        shapes = ((5, 7), (33,), (2, 3, 4), (0,), (), (3,), (16,), (9, 2), (1,))
        parameters, gradients = ([values(shape, dtype, scale) for shape in shapes] for scale in (1.0, 0.5))
        sums = [values(shape, dtype).abs() for shape in shapes]
        steps = [torch.tensor(3.0) for _ in shapes]
        yield parameters, gradients, sums, steps, rate, decay, weight_decay, maximize


def _adagrad(
    parameters: Any, gradients: Any, sums: Any, steps: Any, lr: Any, decay: float, weight_decay: float, maximize: bool
) -> tuple[torch.Tensor, ...]:
    written = [*parameters, *sums]
    if parameters[0].device.type == "cpu":
        # The CPU's fused optimizer takes every tensor for contiguous: it steps on copies of those that are not.
        parameters, gradients, sums = (
            [tensor.contiguous() for tensor in tensors] for tensors in (parameters, gradients, sums)
        )
    torch._fused_adagrad_(
        parameters,
        gradients,
        sums,
        steps,
        lr=lr,
        lr_decay=decay,
        weight_decay=weight_decay,
        eps=1e-8,
        maximize=maximize,
    )
    for original, stepped in zip(written, [*parameters, *sums], strict=True):
        if original is not stepped:
            original.copy_(stepped)
    return tuple(written)


def undefined(case: Case) -> str:
    """Why a recorded call has no defined result, or "": the CPU accepts any shapes, and reads out of bounds."""
    parameters, gradients, sums = (case.args[position] for position in range(3))
    shapes = zip(*([tensor.shape for tensor in tensors] for tensors in (parameters, gradients, sums)), strict=True)
    return "" if all(len(set(row)) == 1 for row in shapes) else "a parameter, its gradient and its sum differ in shape"


CASES = (KernelCall("_fused_adagrad_", ("aten::_fused_adagrad_",), _adagrad, _lists, expands=False),)


def _one_parameter(elements: int) -> tuple[list[torch.Tensor], ...]:
    """The parameter, its gradient, its sum and its step, each in a list."""
    return [torch.randn(elements)], [torch.randn(elements)], [torch.rand(elements)], [torch.ones(())]


def _timed_adagrad(parameters: Any, gradients: Any, sums: Any, steps: Any) -> None:
    torch._fused_adagrad_(
        parameters, gradients, sums, steps, lr=0.1, lr_decay=0.0, weight_decay=0.0, eps=1e-8, maximize=False
    )


WORKLOAD = Workload("aten::_fused_adagrad_", _timed_adagrad, _one_parameter)
