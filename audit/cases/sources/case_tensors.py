"""The tensors of a case one by one: which there are, and the case with another in the place of one of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from itertools import count

import torch
from torch import Tensor

from ...model.case import Case
from ...model.nested import leaves, map_leaves


def tensors_of(case: Case) -> list[Tensor]:
    """The tensors among the arguments, from left to right; one that is given twice counts twice."""
    return [leaf for leaf in leaves((case.args, case.kwargs)) if isinstance(leaf, Tensor)]


def strided_positions(case: Case) -> list[int]:
    """The positions among `tensors_of` that have strides: not the sparse ones."""
    return [position for position, tensor in enumerate(tensors_of(case)) if tensor.layout is torch.strided]


def with_tensors(case: Case, others: Mapping[int, Tensor], title: str) -> Case:
    """The case with other tensors at some positions of `tensors_of`."""
    position = count()

    def change(leaf: object) -> object:
        return others.get(next(position), leaf) if isinstance(leaf, Tensor) else leaf

    args, kwargs = map_leaves(change, (case.args, case.kwargs))
    return replace(case, args=args, kwargs=kwargs, title=title)


def with_one(case: Case, position: int, change: Callable[[Tensor], Tensor | None], title: str) -> Case | None:
    """The case with one tensor changed, or None where `change` has nothing for it.

    The changed tensor wants a gradient where the original does and its dtype has one.
    """
    tensor = tensors_of(case)[position]
    other = change(tensor.detach())
    if other is None:
        return None
    differentiable = tensor.requires_grad and (other.is_floating_point() or other.is_complex())
    return with_tensors(case, {position: other.requires_grad_(differentiable)}, title)
