"""Tensors of a case in one storage: all of them, or two as views of each other.

A kernel that compares tensors by their storage, or skips work if two of them are one, may be wrong for a pair of them
(pytorch/pytorch#91065). With all tensors in one storage one call has every pair.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from itertools import combinations, islice

import torch
from torch import Tensor

from ...model.case import Case
from .case_tensors import comparing_errors, strided_positions, tensors_of, with_tensors
from .dimensions import broadcast

# Elements before, between and behind the tensors of one storage: none of them begins it.
GAP = 3
# Pairs are taken from this many tensors.
MOST_PAIRED = 4


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
    """The tensors of each dtype one after the other in one storage; None if no two have one dtype."""
    by_dtype: dict[torch.dtype, list[int]] = {}
    for position, tensor in _filled(case).items():
        by_dtype.setdefault(tensor.dtype, []).append(position)
    moved: dict[int, Tensor] = {}
    for positions in by_dtype.values():
        if len(positions) > 1:
            moved.update(_parts_of_one({i: tensors_of(case)[i].detach() for i in positions}))
    return with_tensors(comparing_errors(case), moved, "all in one storage") if moved else None


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
    """Tensors of equal shape and dtype are replaced by the first of them; None if no two tensors are alike.

    Integer tensors of an operator that is not elementwise are not replaced: they may be indices or sizes. Neither are
    tensors at the positions `but`.
    """
    alike: dict[tuple[torch.Size, torch.dtype], list[int]] = {}
    for position, tensor in _filled(case).items():
        numbers = elementwise or tensor.is_floating_point() or tensor.is_complex()
        if numbers and position not in but:
            alike.setdefault((tensor.shape, tensor.dtype), []).append(position)
    same: dict[int, Tensor] = {}
    for first, *others in alike.values():
        if others:
            shared = tensors_of(case)[first].detach().clone()
            same.update(dict.fromkeys((first, *others), shared))
    return with_tensors(comparing_errors(case), same, "all the same tensor") if same else None


def _filled(case: Case) -> dict[int, Tensor]:
    tensors = tensors_of(case)
    return {i: tensors[i] for i in strided_positions(case) if tensors[i].numel()}


# ---- two tensors in one storage


Shared = Callable[[Tensor, Tensor], "tuple[Tensor, Tensor] | None"]


def same_tensor(first: Tensor, second: Tensor) -> tuple[Tensor, Tensor] | None:
    """The first one twice."""
    return (first, first) if first.shape == second.shape else None


def halves(first: Tensor, second: Tensor) -> tuple[Tensor, Tensor]:
    """Both in one storage, the second before the first."""
    storage = first.new_zeros(first.numel() + second.numel())
    behind, before = storage[second.numel() :].view(first.shape), storage[: second.numel()].view(second.shape)
    behind.copy_(first)
    before.copy_(second)
    return behind, before


def overlapping_rows(first: Tensor, second: Tensor) -> tuple[Tensor, Tensor] | None:
    """`x[1:]` and `x[:-1]` of one tensor, as in differences along a dimension."""
    if first.shape != second.shape or first.dim() < 1:
        return None
    both = torch.cat([second[:1], first])
    return both[1:], both[:-1]


def own_transpose(first: Tensor, second: Tensor) -> tuple[Tensor, Tensor] | None:
    """The first one and its transpose, as in `x @ x.T`."""
    if first.dim() < 2 or second.dim() < 2 or second.shape != first.mT.shape:
        return None
    return first, first.mT


def behind_lazy_bit(first: Tensor, second: Tensor) -> tuple[Tensor, Tensor] | None:
    """The first one, and its negation or conjugation that is not carried out yet."""
    if first.shape != second.shape or not (first.is_floating_point() or first.is_complex()):
        return None
    return first, first.conj() if first.is_complex() else torch._neg_view(first)


SHARED: tuple[Shared, ...] = (same_tensor, halves, overlapping_rows, own_transpose, behind_lazy_bit)


def pairs_in_one_storage(cases: Sequence[Case], ways: Sequence[Shared] = SHARED) -> Iterator[Case]:
    """For each way in which two tensors can be views of one storage, the first case that can have two such tensors.

    If no case can, the operands of an elementwise operator are broadcast to one shape.
    """
    equal = [broadcast(case) for case in cases if case.elementwise]
    for way in ways:
        varied = (sharing(case, way) for case in (*cases, *equal))
        yield from islice((variant for variant in varied if variant is not None), 1)


def sharing(case: Case, way: Shared) -> Case | None:
    """The case with the first two tensors that can be so put into one storage, or None if no two can."""
    tensors = tensors_of(case)
    for left, right in combinations(strided_positions(case)[:MOST_PAIRED], 2):
        first, second = tensors[left], tensors[right]
        if first.dtype is not second.dtype or not first.numel() or not second.numel():
            continue
        # Integers are indices, sorted or counted: kernels rely on that.
        if way is not halves and not (case.elementwise or first.is_floating_point() or first.is_complex()):
            continue
        pair = way(first.detach().clone(), second.detach())
        if pair is not None:
            mine, other = pair
            mine.requires_grad_(first.requires_grad)
            if other is not mine:
                other = other.detach().requires_grad_(second.requires_grad)
            title = f"tensors {left} and {right}: {way.__name__.replace('_', ' ')}"
            return with_tensors(comparing_errors(case), {left: mine, right: other}, title)
    return None
