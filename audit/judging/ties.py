"""Accepts another index of an equal element where the operator promises no order of equal elements.

PyTorch promises that order only for a stable sort. Its documentation leaves it open for `topk`, `kthvalue`, `median`,
`mode` and other sorts, and devices choose differently.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from ..model.case import Case
from .operator_name import operator_name
from .reference import flushed

# The operators that return indices of elements, and the position of their argument `dim`.
DIM_POSITION = {"argsort": 1, "kthvalue": 2, "median": 1, "mode": 1, "nanmedian": 1, "sort": 1, "topk": 2}


# Gradients of longer rows are not compared: each element is compared with each.
LONGEST = 4096


def names_equal_elements(case: Case, mine: Tensor, cpus: Tensor) -> bool:
    """Whether two results of a case are indices of equal elements; NaN equals NaN, a subnormal number equals zero.

    False where the operator returns no such indices, where the sort is stable, and where an index is out of range.
    """
    position = _dim_position(case)
    chosen_from = _first_tensor(case)
    if position is None or chosen_from is None or cpus.dtype is not torch.int64 or _is_stable(case):
        return False
    dim = case.kwargs.get("dim", case.args[position] if len(case.args) > position else -1)
    if not isinstance(dim, int) or mine.shape != cpus.shape or not chosen_from.dim():
        return False
    indices = [each.cpu() for each in (mine, cpus)]
    if cpus.dim() < chosen_from.dim():
        indices = [each.unsqueeze(dim) for each in indices]
    size = chosen_from.shape[dim]
    if any(each.dim() != chosen_from.dim() or ((each < 0) | (each >= size)).any() for each in indices):
        return False
    mine_named, cpus_named = (torch.gather(flushed(chosen_from).detach().cpu(), dim, each) for each in indices)
    return torch.equal(mine_named.isnan(), cpus_named.isnan()) and torch.equal(
        mine_named.nan_to_num(), cpus_named.nan_to_num()
    )


def same_for_equal_elements(case: Case, mine: Tensor, cpus: Tensor) -> bool:
    """Whether two gradients have the same sum over equal elements of a row.

    The gradient goes to the element whose index was returned, which may be any of the equal ones.
    """
    position = _dim_position(case)
    chosen_from = _first_tensor(case)
    if position is None or chosen_from is None or _is_stable(case) or mine.shape != chosen_from.shape != ():
        return False
    dim = case.kwargs.get("dim", case.args[position] if len(case.args) > position else -1)
    if not isinstance(dim, int) or chosen_from.shape[dim] > LONGEST:
        return False
    elements = chosen_from.detach().cpu().movedim(dim, -1)
    own, expected = (_shared(elements, each.detach().cpu().movedim(dim, -1)) for each in (mine, cpus))
    return torch.allclose(own, expected, rtol=1e-3, atol=1e-5)


def _shared(elements: Tensor, gradient: Tensor) -> Tensor:
    """For each element the sum of the gradients of all elements equal to it."""
    rows, gradients = elements.reshape(-1, elements.shape[-1]), gradient.reshape(-1, gradient.shape[-1]).double()
    return torch.stack([(row[:, None] == row).double() @ each for row, each in zip(rows, gradients, strict=True)])


def _dim_position(case: Case) -> int | None:
    """The call of a form, as with out= or in inference mode, has a title for a name; its first outputs are the same."""
    return DIM_POSITION.get(operator_name(case)) or DIM_POSITION.get(case.entry)


def _first_tensor(case: Case) -> Tensor | None:
    first: Any = case.args[0] if case.args else case.kwargs.get("self", case.kwargs.get("input"))
    return first if isinstance(first, Tensor) and first.layout is torch.strided else None


def _is_stable(case: Case) -> bool:
    return bool(case.kwargs.get("stable"))
