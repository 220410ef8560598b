"""All tensors of a call in one storage, and all that are alike one and the same tensor.

A kernel that tells tensors apart by their storage, or skips work where two of them are one, errs for a pair of them;
with all tensors together one call has every pair.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import replace

import torch
from torch import Tensor

from ...model.case import Case
from .case_tensors import strided_positions, tensors_of, with_tensors
from .dimensions import broadcast

# Elements before, between and behind the tensors of one storage: none of them begins it.
GAP = 3


def in_one_memory(case: Case, written: Collection[int], *, elementwise: bool) -> Iterator[Case]:
    """The tensors of each dtype as parts of one storage; then those of one shape and dtype as one tensor.

    Args:
        case: the call.
        written: the positions of what it writes, which is another tensor's memory only where that is allowed.
        elementwise: whether each element of a result depends on the elements at its place alone.
    """
    together = in_one_storage(case)
    if together is not None:
        yield together
    alike = all_the_same(broadcast(case) if elementwise else case, () if elementwise else written, elementwise)
    if alike is not None:
        yield alike


def in_one_storage(case: Case) -> Case | None:
    """The tensors of each dtype one behind the other in one storage; None where no two have one dtype."""
    by_dtype: dict[torch.dtype, list[int]] = {}
    for position, tensor in _filled(case).items():
        by_dtype.setdefault(tensor.dtype, []).append(position)
    moved: dict[int, Tensor] = {}
    for positions in by_dtype.values():
        if len(positions) > 1:
            moved.update(_parts_of_one({i: tensors_of(case)[i].detach() for i in positions}))
    return with_tensors(_unsure(case), moved, "all in one storage") if moved else None


def _parts_of_one(tensors: dict[int, Tensor]) -> Iterator[tuple[int, Tensor]]:
    some = next(iter(tensors.values()))
    storage = some.new_zeros(GAP + sum(tensor.numel() + GAP for tensor in tensors.values()))
    start = GAP
    for position, tensor in tensors.items():
        part = storage[start : start + tensor.numel()].view(tensor.shape)
        part.copy_(tensor)
        start += tensor.numel() + GAP
        yield position, part


def all_the_same(case: Case, but: Collection[int], elementwise: bool) -> Case | None:
    """The first of several tensors with one shape and dtype in the place of them all; None where no two are alike.

    Integers stay apart where they may be places in other tensors, or their sizes; those at `but` stay as they are.
    """
    alike: dict[tuple[torch.Size, torch.dtype], list[int]] = {}
    for position, tensor in _filled(case).items():
        numbers = elementwise or tensor.is_floating_point() or tensor.is_complex()
        if numbers and position not in but:
            alike.setdefault((tensor.shape, tensor.dtype), []).append(position)
    same: dict[int, Tensor] = {}
    for first, *others in alike.values():
        if others:
            one = tensors_of(case)[first].detach().clone()
            same.update(dict.fromkeys((first, *others), one))
    return with_tensors(_unsure(case), same, "all the same tensor") if same else None


def _filled(case: Case) -> dict[int, Tensor]:
    tensors = tensors_of(case)
    return {i: tensors[i] for i in strided_positions(case) if tensors[i].numel()}


def _unsure(case: Case) -> Case:
    return replace(case, errors_count=True)
