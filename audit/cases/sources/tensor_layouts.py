"""One tensor alone in another memory layout.

Kernels that take several tensors may choose their code by the layout of one of them, and read the others as if they
had it too.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import TypeVar

import torch
from torch import Tensor

from ...model.case import Case, CaseSource
from ...model.group import GroupKey
from ...model.nested import leaves
from ...model.selection import Samples
from ..calls.invocation import SchemaCall
from .case_tensors import strided_positions, tensors_of, unsure, with_one, with_tensors
from .derived import LOOKED_AT, DerivedSource, distinct, representative
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

Choice = TypeVar("Choice")

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
# Which dtypes of OpInfos and schemas are varied; bfloat16 goes the ways of float16, small integers those of int64.
THOROUGH = "float32"
# Overloads whose CPU kernel ends the process for a tensor that is not contiguous: there is nothing to compare with.
KERNEL_DIES = frozenset({"_weight_int8pack_mm"})
IN_TURN = ("float16", "int64", "complex64")


class TensorLayoutSource(DerivedSource[CaseSource]):
    """Every tensor of a representative sample alone in every layout; of other samples and dtypes some in turn."""

    name = "tensor layouts"

    def varies(self, key: GroupKey) -> bool:
        """All of float32; of OpInfos also a half, an integer and a complex dtype. `targets` has what is written."""
        if self._base.name == "opinfo":
            return key.dtype in (THOROUGH, *IN_TURN)
        return key.dtype == THOROUGH and key.operator not in KERNEL_DIES and not writes(key)

    def cases(self, key: GroupKey, samples: Samples) -> Iterator[Case]:
        """The variations of the representative case, then those of cases of other kinds."""
        base = self.base_key(key)
        made = self._base.cases(base, Samples.DEFAULT)
        if not self._is_thorough(base):
            yield from super().cases(key, samples)
            return
        cases_of_kinds = distinct(made, 1 + OTHER_SAMPLES)
        for turn, case in enumerate(cases_of_kinds):
            yield from self.variations(base, case) if turn == 0 else each_in_turn(case, turn_of(base) + turn)
        yield from pairs_in_one_storage(cases_of_kinds)

    def chosen(self, cases: Iterable[Case]) -> Iterable[Case]:
        """The representative case, one without empty tensors where there is one."""
        return filled(cases)

    def variations(self, key: GroupKey, case: Case) -> Iterator[Case]:
        """Of an OpInfo each tensor in each layout; of others fewer, as many more of them are much alike."""
        many = len(tensors_of(case))
        if self._is_thorough(key) and many <= MOST_TENSORS:
            yield from each_alone(case, FURTHER if many == 1 else ALONE)
            return
        yield from each_in_turn(case, turn_of(key))
        if key.source != "opinfo":
            whole = (in_layout(unsure(case), layout) for layout in rotated(WHOLE, turn_of(key)))
            yield from islice((varied for varied in whole if varied is not None), 1)
        yield from islice(pairs_in_one_storage([case], rotated(SHARED, turn_of(key))), 1)

    def _is_thorough(self, key: GroupKey) -> bool:
        return self._base.name == "opinfo" and key.dtype == THOROUGH


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
    return with_tensors(unsure(case), ramps, case.title) if len(tensors) == len(ramps) else case


def _ramp(position: int, dtype: torch.dtype) -> Tensor:
    count = math.prod(GROWN)
    return ((torch.arange(count) * (position + 2)) % 7 + position).view(GROWN).to(dtype)


def turn_of(key: GroupKey) -> int:
    """Which variation comes first, where a group is tried in one of several: another for each operator and dtype."""
    return zlib.crc32(f"{key.operator}:{key.dtype}".encode())


def rotated(choices: Sequence[Choice], turn: int) -> tuple[Choice, ...]:
    """The choices in their order, beginning with another one for each turn."""
    start = turn % len(choices) if choices else 0
    return (*choices[start:], *choices[:start])


def writes(key: GroupKey) -> bool:
    """Whether the calls of a group are schema calls that write into their arguments."""
    name = key.operator if "::" in key.operator else f"aten::{key.operator}"
    return key.source == "schema" and SchemaCall(name).writes


def each_alone(case: Case, layouts: Sequence[Layout] = ALONE) -> Iterator[Case]:
    """Each tensor alone in each of the layouts."""
    for position in strided_positions(case)[:MOST_TENSORS]:
        for layout in layouts:
            varied = alone_in(case, position, layout)
            if varied is not None:
                yield varied


def each_in_turn(case: Case, start: int, but: Sequence[int] = ()) -> Iterator[Case]:
    """Each tensor alone in one layout: the first that it can have of `ALONE`, from another one on for each tensor.

    Those at the positions `but` stay as they are.
    """
    for position in [p for p in strided_positions(case) if p not in but][:MOST_TENSORS]:
        varied = (alone_in(case, position, layout) for layout in rotated(ALONE, start + position))
        yield from islice((found for found in varied if found is not None), 1)


def alone_in(case: Case, position: int, layout: Layout) -> Case | None:
    """The case with one tensor in `layout` and all others as they are, or None where it cannot have it."""
    title = f"tensor {position} {layout.__name__.replace('_', ' ')}"
    return with_one(unsure(case), position, layout, title)
