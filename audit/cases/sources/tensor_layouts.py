"""One tensor alone in another memory layout.

Kernels that take several tensors may choose their code by the layout of one of them, and read the others as if they
had it too.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice

import torch
from torch import Tensor

from ...model.case import Case
from ...model.nested import leaves
from .case_tensors import comparing_errors, strided_positions, tensors_of, with_one, with_tensors
from .derived import LOOKED_AT, THOROUGH, BaseGroup, Factor, distinct, representative, rotated
from .layouts import (
    Layout,
    channels_last,
    conjugate_view,
    expanded,
    in_layout,
    negative_view,
    offset,
    stepped,
    stepped_rows,
    swapped_in_front,
    transposed,
)
from .shared_storage import SHARED, pairs_in_one_storage

ALONE: tuple[Layout, ...] = (
    transposed,
    offset,
    expanded,
    stepped,
    stepped_rows,
    swapped_in_front,
    channels_last,
    negative_view,
    conjugate_view,
)
# What `layouts` does not put all tensors of an OpInfo's sample into.
FURTHER: tuple[Layout, ...] = (stepped_rows, swapped_in_front)
# What the calls of schemas and modules, which `layouts` does not vary, are tried in as a whole: in one of them.
WHOLE: tuple[Layout, ...] = (transposed, offset, stepped)
# Of many tensors, a list most often, the first few are enough, and one layout for each.
MOST_TENSORS = 4
# The shape that is given to tensors of a call of which only empty ones are recorded.
GROWN = (2, 3, 4)
# How many samples of other kinds are tried in layouts in turn, beside the representative in all of them.
OTHER_SAMPLES = 2
# Overloads whose CPU kernel ends the process for a tensor that is not contiguous: there is nothing to compare with.
KERNEL_DIES = frozenset({"_weight_int8pack_mm"})
# Which other dtypes of OpInfos are varied; bfloat16 goes the ways of float16, small integers those of int64.
IN_TURN = ("float16", "int64", "complex64")


def _applies(group: BaseGroup) -> bool:
    """All of float32; of OpInfos also a half, an integer and a complex dtype. `targets` has what is written."""
    if group.key.source == "opinfo":
        return group.key.dtype in (THOROUGH, *IN_TURN)
    return group.key.dtype == THOROUGH and group.key.operator not in KERNEL_DIES and not group.writes


def _chosen(group: BaseGroup, cases: Iterable[Case]) -> list[Case]:
    """The representative case, without empty tensors where there is one; of OpInfos in float32 also other kinds."""
    return distinct(cases, 1 + OTHER_SAMPLES) if _is_thorough(group) else filled(cases)


def _variations(group: BaseGroup, cases: Sequence[Case]) -> Iterator[Case]:
    """Of an OpInfo each tensor in each layout; of others fewer, as many more of them are much alike."""
    for number, case in enumerate(cases):
        many = len(tensors_of(case))
        if number == 0 and _is_thorough(group) and many <= MOST_TENSORS:
            yield from each_alone(case, FURTHER if many == 1 else ALONE)
            continue
        yield from each_in_turn(case, group.first_variation + number)
        if group.key.source != "opinfo":
            whole = (in_layout(comparing_errors(case), layout) for layout in rotated(WHOLE, group.first_variation))
            yield from islice((varied for varied in whole if varied is not None), 1)
        if number == 0:
            yield from islice(pairs_in_one_storage([case], rotated(SHARED, group.first_variation)), 1)
    if _is_thorough(group):
        yield from pairs_in_one_storage(cases)


def _is_thorough(group: BaseGroup) -> bool:
    return group.key.source == "opinfo" and group.key.dtype == THOROUGH


TENSOR_LAYOUT_FACTOR = Factor("tensor layouts", _variations, _applies, _chosen)


def filled(cases: Iterable[Case]) -> list[Case]:
    """The representative of the first cases whose positional tensors all have elements, else one given elements."""
    looked_at = list(islice(cases, LOOKED_AT))
    full = [case for case in looked_at if all(t.numel() for t in leaves(case.args) if isinstance(t, Tensor))]
    case = representative(full) or representative(looked_at)
    return [] if case is None else [case if full else with_elements(case)]


def with_elements(case: Case) -> Case:
    """The case with tensors of `GROWN` in place of empty ones that have one shape; others stay as they are."""
    tensors = [tensor for tensor in tensors_of(case) if tensor.layout is torch.strided]
    if not tensors or any(tensor.numel() or tensor.shape != tensors[0].shape for tensor in tensors):
        return case
    ramps = {i: _ramp(i, tensor.dtype) for i, tensor in enumerate(tensors_of(case))}
    return with_tensors(comparing_errors(case), ramps, case.title) if len(tensors) == len(ramps) else case


def _ramp(position: int, dtype: torch.dtype) -> Tensor:
    count = math.prod(GROWN)
    return ((torch.arange(count) * (position + 2)) % 7 + position).view(GROWN).to(dtype)


def each_alone(case: Case, layouts: Sequence[Layout] = ALONE) -> Iterator[Case]:
    """Each tensor alone in each of the layouts."""
    for position in strided_positions(case)[:MOST_TENSORS]:
        for layout in layouts:
            varied = alone_in(case, position, layout)
            if varied is not None:
                yield varied


def each_in_turn(case: Case, start: int, but: Sequence[int] = ()) -> Iterator[Case]:
    """Each tensor alone in one layout of `ALONE`: the first that it can have, starting at another for each tensor.

    Tensors at the positions `but` are not varied.
    """
    for position in [p for p in strided_positions(case) if p not in but][:MOST_TENSORS]:
        varied = (alone_in(case, position, layout) for layout in rotated(ALONE, start + position))
        yield from islice((variant for variant in varied if variant is not None), 1)


def alone_in(case: Case, position: int, layout: Layout) -> Case | None:
    """The case with one tensor in `layout` and all others as they are, or None if it cannot have it."""
    title = f"tensor {position} {layout.__name__.replace('_', ' ')}"
    return with_one(comparing_errors(case), position, layout, title)
