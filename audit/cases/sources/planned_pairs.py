"""Calls at further levels, by a recorded plan: pairs of an argument's level and a tensor's that no case was at.

Other sources vary one call of an operator in many ways, and leave its other calls as they are. Which pairs that leaves
open shows only after a whole audit: `mpsmith.audit.running.pair_planning` reads them from its store, and plans a call
for each few of them. A row of the plan names a recorded call or a sample, the dtype that its tensors get, and levels.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cache, cached_property
from itertools import groupby, islice
from pathlib import Path

import torch
from torch import Tensor

from ...model.case import Case, CaseSource, QuickShare, seed_generators
from ...model.group import GroupKey
from ...model.selection import Samples
from .case_tensors import map_tensors
from .opinfo import OpInfoSource
from .variations import PLAIN, Variation, variations_of, variations_of_call, varied_case

PLAN = Path(__file__).with_name("planned_pairs.tsv")


@dataclass(frozen=True)
class Planned:
    """One case of the plan.

    Attributes:
        base: the group of another source whose call is varied.
        dtype: what its tensors of the group's dtype become.
        position: of the call in the group.
        levels: by factor, what the call is brought to.
    """

    base: GroupKey
    dtype: str
    position: int
    levels: tuple[tuple[str, str], ...]

    def __str__(self) -> str:
        row = "; ".join(f"{factor}={level}" for factor, level in self.levels)
        base = self.base
        return "\t".join((base.source, base.operator, base.variant, base.dtype, self.dtype, str(self.position), row))

    @classmethod
    def parse(cls, line: str) -> Planned:
        """The case that a line of the plan describes."""
        source, operator, variant, base_dtype, dtype, position, row = line.split("\t")
        levels = [tuple(each.split("=", 1)) for each in row.split("; ") if each]
        key = GroupKey(source, operator, variant, base_dtype, "fallback")
        return cls(key, dtype, int(position), tuple((factor, level) for factor, level in levels))


class PlannedPairSource(CaseSource):
    """The planned cases of some sources.

    Args:
        name: of the source.
        bases: the sources whose calls are varied.
    """

    quick = QuickShare.NONE

    def __init__(self, name: str, *bases: CaseSource) -> None:
        self.name = name
        self._bases = {base.name: base for base in bases}

    def groups(self) -> Iterable[GroupKey]:
        """The groups of the plan."""
        return self._by_group

    def cases(self, key: GroupKey, samples: Samples) -> Iterator[Case]:
        """The planned cases of a group: the same calls for every seed."""
        for base, of_base in groupby(self._by_group[replace(key, mode="fallback")], lambda each: each.base):
            rows = list(of_base)
            calls = calls_of(self._bases[base.source], base, 1 + max(each.position for each in rows))
            for each in rows:
                yield at_levels(self._bases[base.source], each, calls[each.position])

    @cached_property
    def _by_group(self) -> dict[GroupKey, list[Planned]]:
        groups: dict[GroupKey, list[Planned]] = {}
        for each in plan():
            if each.base.source in self._bases:
                key = replace(each.base, source=self.name, dtype=each.dtype)
                groups.setdefault(key, []).append(each)
        return groups


@cache
def plan() -> tuple[Planned, ...]:
    """All planned cases, those of one base after each other."""
    return tuple(map(Planned.parse, PLAN.read_text().splitlines()))


def calls_of(source: CaseSource, key: GroupKey, most: int) -> list[Case]:
    """The first calls of a group, the same ones whatever the generators were seeded with."""
    seed_generators(0, key.label)
    return list(islice(source.cases(key, Samples.DEFAULT), most))


def at_levels(source: CaseSource, planned: Planned, call: Case) -> Case:
    """A call in the planned dtype at the planned levels."""
    case = in_dtype(call, planned.base.dtype, planned.dtype)
    varied = varied_case(variations_for(source, planned, case), dict(planned.levels), [case])
    return replace(varied, title=", ".join(part for part in (call.title, varied.title) if part not in ("", PLAIN)))


def variations_for(source: CaseSource, planned: Planned, case: Case) -> tuple[Variation, ...]:
    """The variations of a sample, or of a call by name, in the planned dtype."""
    if isinstance(source, OpInfoSource):
        return variations_of(source.opinfo(planned.base), planned.dtype)
    return variations_of_call(planned.base.operator, planned.dtype, case)


def in_dtype(case: Case, before: str, after: str) -> Case:
    """The call with its tensors of one dtype in another."""
    if before == after:
        return case
    old, new = getattr(torch, before), getattr(torch, after)

    def change(tensor: Tensor, position: int) -> Tensor:
        if tensor.dtype is not old:
            return tensor
        changed = tensor.detach().to(new)
        return changed.requires_grad_(tensor.requires_grad and (new.is_floating_point or new.is_complex))

    return map_tensors(case, change)
