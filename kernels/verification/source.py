"""The cases of all families: each family's own calls in the layouts, sizes and values that audits vary."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import cache
from itertools import chain

import torch

from ...audit.cases.sources.derived import representative
from ...audit.cases.sources.layouts import LAYOUTS, Layout, expanded, in_every_layout
from ...audit.cases.sources.schema import SchemaSource
from ...audit.cases.sources.sizes import SizePlan, in_every_size
from ...audit.cases.sources.special_values import SPRINKLED, with_special_values
from ...audit.model.case import Case, CaseSource
from ...audit.model.group import GroupKey
from ...audit.model.selection import Samples
from ..runtime import catalog
from ..runtime.registration import registered
from .calls import KernelCall, RefusedCall
from .given_outputs import with_given_outputs

# Every kernel runs on the host, thread after thread: one long dimension is enough.
SIZES = SizePlan(small=True, rows=0, many=2)


@cache
def calls_of(family: str) -> tuple[KernelCall, ...]:
    """The CASES of the family's `cases.py`; none if it has no such file.

    Raises UnknownKernelError for an unknown family.
    """
    module = catalog.part_of(family, "cases")
    return () if module is None else tuple(module.CASES)


def refused_calls(family: str) -> tuple[RefusedCall, ...]:
    """The calls that the function `refused` of the family's `cases.py` yields; none if there is no such function.

    Raises UnknownKernelError for an unknown family.
    """
    return tuple(getattr(catalog.part_of(family, "cases"), "refused", tuple)())


def cases_of(call: KernelCall, dtype: torch.dtype, layouts: Sequence[Layout] = LAYOUTS) -> Iterator[Case]:
    """The cases of one call in one dtype, in a fixed order: its own, each in every layout, and other values and sizes.

    Calls that write to a tensor get no expanded one, because its elements share memory.
    """
    own = list(call.cases(dtype))
    yield from own
    for case in own if call.layouts else ():
        yield from in_every_layout(case, [layout for layout in layouts if call.expands or layout is not expanded])
    plain = representative(own)
    if plain is None:
        return
    if call.special_values and dtype is not torch.bool:
        yield from with_special_values(plain, call.name, _name(dtype), SPRINKLED[dtype.is_floating_point])
    if call.elementwise:
        yield from in_every_size(plain, SIZES)


def recorded_calls(family: str, overloads: Collection[str]) -> Iterator[tuple[GroupKey, Iterator[Case]]]:
    """The recorded calls of these overloads by group; out= forms are also called with outputs in other layouts.

    A family's `cases.py` may have a function `undefined` that returns why a call's result is undefined, or "".
    """
    source = _schema_source()
    undefined = getattr(catalog.part_of(family, "cases"), "undefined", lambda case: "")
    for key in source.groups():
        if f"aten::{key.operator}" in overloads:
            cases = source.cases(key, Samples.DEFAULT)
            defined = (replace(case, skipped=case.skipped or undefined(case)) for case in cases)
            yield key, chain.from_iterable(map(_also_with_outputs_anywhere, defined))


def _also_with_outputs_anywhere(case: Case) -> Iterator[Case]:
    yield case
    if not case.skipped:
        yield from with_given_outputs(case)


@cache
def _schema_source() -> SchemaSource:
    return SchemaSource()


class KernelSource(CaseSource):
    """A source of cases for audits: the calls of each family with a kernel that is registered in this process.

    Operators that torch has kernels for are left to the other sources. On the simulated device those are the CPU's
    kernels, which refuse some of these calls or give wrong results for them.
    """

    name = "kernels"

    def groups(self) -> Iterable[GroupKey]:
        """One group for each call and dtype."""
        for call in self._calls():
            for dtype in call.dtypes:
                yield GroupKey(self.name, call.name, call.variant, _name(dtype), "fallback")

    def cases(self, key: GroupKey, samples: Samples) -> Iterator[Case]:
        """The cases of one call in one dtype."""
        for call in self._calls():
            if (call.name, call.variant) == (key.operator, key.variant):
                yield from cases_of(call, getattr(torch, key.dtype))

    def _calls(self) -> Iterator[KernelCall]:
        answered = {overload.partition(".")[0] for overload in registered()}
        for family in catalog.families():
            yield from (call for call in calls_of(family) if not answered.isdisjoint(call.operators))


def _name(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")
