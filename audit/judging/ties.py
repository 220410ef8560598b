"""Accepts a different index of an equal element if the operator does not define the order of equal elements.

PyTorch defines that order only for a stable sort. Its documentation leaves it open for `topk`, `kthvalue`, `median`,
`mode` and other sorts, and devices choose differently.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from ..model.case import Case
from .operator_name import operator_name
from .reference import flushed

# The operators that return indices of elements, and the position of their argument `dim`.
DIM_POSITION = {"argsort": 1, "kthvalue": 2, "median": 1, "mode": 1, "nanmedian": 1, "sort": 1, "topk": 2}
# They number NaN, each of which differs from all others, in any order.
NUMBERING = ("_unique", "_unique2", "unique")
# The position of their argument `sorted`.
SORTED_POSITION = {"topk": 4}


def names_equal_elements(case: Case, mine: Tensor, cpus: Tensor, dtype: torch.dtype | None = None) -> bool:
    """Whether two results of a case are indices of equal elements; NaN equals NaN, a subnormal number equals zero.

    False if the operator returns no such indices, if the sort is stable, or if an index is out of range. The numbers of
    NaN that `unique` gives count as well. One of several calls in a row may have rounded the elements to another
    `dtype`.
    """
    chosen_from = _first_tensor(case)
    if dtype is not None and chosen_from is not None:
        chosen_from = chosen_from.to(dtype)
    if operator_name(case) in NUMBERING and chosen_from is not None and cpus.dtype is torch.int64:
        return _numbers_alike(chosen_from.detach().cpu(), mine.detach().cpu(), cpus.detach().cpu())
    if _name(case) not in DIM_POSITION or _is_stable(case) or mine.shape != cpus.shape:
        return False
    if chosen_from is None or cpus.dtype is not torch.int64:
        return False
    named = (_named(chosen_from, dim, mine, cpus) for dim in _dims(case, chosen_from))
    return any(pair is not None and _equal(*pair) for pair in named)


def is_in_another_order(case: Case, position: int, mine: Sequence[Any], cpus: Sequence[Any]) -> bool:
    """Whether results of `topk` are the CPU's in a different order, as `sorted=False` allows.

    Args:
        case: the case; its first argument has the elements.
        position: the position of the output that differs: values, or the indices that follow them.
        mine, cpus: the outputs of both devices.
    """
    chosen_from, first = _first_tensor(case), position - position % 2
    if chosen_from is None or not _may_be_unsorted(case) or first + 1 >= len(cpus):
        return False
    pairs = [(outputs[first], outputs[first + 1]) for outputs in (mine, cpus)]
    if (
        not all(isinstance(tensor, Tensor) for pair in pairs for tensor in pair)
        or pairs[0][0].shape != pairs[1][0].shape
    ):
        return False
    values, expected = (pair[0].detach().cpu() for pair in pairs)
    for dim in _dims(case, chosen_from):
        named = _named(chosen_from, dim, *(pair[1] for pair in pairs))
        if named is not None and _equal(named[0], values) and _equal(values.sort(dim)[0], expected.sort(dim)[0]):
            return True
    return False


def same_for_equal_elements(case: Case, mine: Tensor, cpus: Tensor) -> bool:
    """Whether two gradients have the same sum over equal elements of a row.

    The gradient goes to the element whose index was returned, which may be any of the equal ones.
    """
    chosen_from = _first_tensor(case)
    if chosen_from is None or _is_stable(case) or mine.shape != chosen_from.shape != ():
        return False
    for dim in _dims(case, chosen_from):
        elements = chosen_from.detach().cpu().movedim(dim, -1)
        own, expected = (_shared(elements, gradient.detach().cpu().movedim(dim, -1)) for gradient in (mine, cpus))
        if torch.allclose(own, expected, rtol=1e-3, atol=1e-5):
            return True
    return False


def _dims(case: Case, chosen_from: Tensor) -> list[int]:
    """The dimensions along which a call may have chosen elements; all if the case makes several calls in a row."""
    name = _name(case)
    if name == "msort":
        return [0]
    if name not in DIM_POSITION or not chosen_from.dim():
        return []
    position = DIM_POSITION[name]
    dim = case.kwargs.get("dim", case.args[position] if len(case.args) > position else -1)
    others = list(range(chosen_from.dim())) if case.title.startswith("in a row") else []
    return [dim, *others] if isinstance(dim, int) else others


def _named(chosen_from: Tensor, dim: int, *indices: Tensor) -> list[Tensor] | None:
    """The elements at these indices along a dimension; None if an index is not valid."""
    listed = [tensor.detach().cpu() for tensor in indices]
    if listed[0].dim() < chosen_from.dim():
        listed = [tensor.unsqueeze(dim) for tensor in listed]
    size, elements = chosen_from.shape[dim], flushed(chosen_from).detach().cpu()
    for index in listed:
        others = [length for axis, length in enumerate(index.shape) if axis != dim % chosen_from.dim()]
        kept = [length for axis, length in enumerate(chosen_from.shape) if axis != dim % chosen_from.dim()]
        if index.dtype is not torch.int64 or others != kept or bool(((index < 0) | (index >= size)).any()):
            return None
    return [torch.gather(elements, dim, tensor) for tensor in listed]


def _numbers_alike(elements: Tensor, mine: Tensor, cpus: Tensor) -> bool:
    """Whether two numberings of elements differ only in which NaN has which of the numbers of all NaN."""
    if not mine.shape == cpus.shape == elements.shape:
        return False
    nan = elements.isnan()
    return torch.equal(mine[~nan], cpus[~nan]) and torch.equal(mine[nan].sort()[0], cpus[nan].sort()[0])


def _equal(left: Tensor, right: Tensor) -> bool:
    return torch.equal(left.isnan(), right.isnan()) and torch.equal(left.nan_to_num(), right.nan_to_num())


def _shared(elements: Tensor, gradient: Tensor) -> Tensor:
    """For each element, the sum of the gradients of all elements equal to it; zero for NaN."""
    rows, gradients = elements.reshape(-1, elements.shape[-1]), gradient.reshape(-1, gradient.shape[-1]).double()
    sums = []
    for row, row_gradient in zip(rows, gradients, strict=True):
        kinds = torch.unique(row, return_inverse=True)[1]
        total = torch.zeros(len(row), dtype=torch.float64).index_add(0, kinds, row_gradient)[kinds]
        sums.append(torch.where(row.isnan(), 0, total))
    return torch.stack(sums)


def _name(case: Case) -> str:
    """The operator that computes the first outputs; for a wrapped call (out=, inference mode), that of its entry."""
    name = operator_name(case)
    return name if name in (*DIM_POSITION, "msort") else case.entry.split(".")[0]


def _may_be_unsorted(case: Case) -> bool:
    position = SORTED_POSITION.get(_name(case))
    if position is None:
        return False
    given = case.kwargs.get("sorted", case.args[position] if len(case.args) > position else True)
    return given is False or "sorted=False" in case.title


def _first_tensor(case: Case) -> Tensor | None:
    first: Any = case.args[0] if case.args else case.kwargs.get("self", case.kwargs.get("input"))
    return first if isinstance(first, Tensor) and first.layout is torch.strided else None


def _is_stable(case: Case) -> bool:
    return bool(case.kwargs.get("stable"))
