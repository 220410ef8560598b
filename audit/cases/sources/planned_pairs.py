"""Calls at further levels, by a recorded plan: pairs of an argument's level and a tensor's that no case was at.

Other sources vary one call of an operator in many ways, and leave its other calls as they are. Which pairs that leaves
open shows only after a whole audit: `tests/support/pair_planning.py` reads them from its store, and plans a call
for each few of them. A line of the plan names the group of a recorded call or of a sample; each line below it a call of
the group, by a checksum of what it is at, the dtype that its tensors get, and the levels that it is brought to. So the
plan holds where a source makes more calls, fewer, or others in between; a call that it no longer makes is left out.
"""

from __future__ import annotations

import zlib
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import groupby, islice
from pathlib import Path

import torch
from torch import Tensor

from ...model.case import Case, CaseSource, QuickShare, seed_generators
from ...model.group import GroupKey
from ...model.selection import Samples
from ..covering.levels import levels_of, size_of
from ..covering.pairs import FORM, GRADIENT, SIZE, Levels
from .case_tensors import map_tensors, tensors_of
from .derived import BaseGroup, VariedSource
from .sizes import LONG, UNCHECKED, SizePlan, checks_sizes, draws, in_every_size, is_any_of, is_for_users
from .variations import GRADIENTS, OUT, PLAIN, SIZES, Change, Variation, variations_of, variations_of_call, varied_case
from .write_targets import schema_case, transposed, written_in

PLAN = Path(__file__).with_name("planned_pairs.tsv")
# One dimension longer, where the sizes of others stay; and at which size a larger one counts.
LONGER = SizePlan(empty=0, rows=2, longest=LONG, many=0)
SIZES_AT = {"over 131,072": "over 65,536"}
# Calls of a group beyond so many differ little from those before.
MOST_LOOKED_AT = 120


@dataclass(frozen=True)
class Planned:
    """A case of the plan: a call of a group, by its `checksum`, in another dtype and at levels by factor."""

    base: GroupKey
    call: str
    dtype: str
    levels: Levels


class PlannedPairSource(CaseSource):
    """The planned cases of some sources.

    Args:
        name: of the source.
        bases: the sources whose calls are varied.
    """

    quick = QuickShare.NONE

    def __init__(self, name: str, *bases: CaseSource) -> None:
        self.name = name
        self.bases = {base.name: base for base in bases}

    def groups(self) -> Iterable[GroupKey]:
        """The groups of the plan whose calls the installed torch has."""
        return self._by_group

    def cases(self, key: GroupKey, samples: Samples) -> Iterator[Case]:
        """The planned cases of a group: the same calls for every seed."""
        for base, of_base in groupby(self._by_group[replace(key, mode="fallback")], lambda planned: planned.base):
            rows = list(of_base)
            calls = calls_of(self.bases[base.source], base, {row.call for row in rows})
            yield from (at_levels(self.bases[base.source], row, calls[row.call]) for row in rows if row.call in calls)

    @cached_property
    def _by_group(self) -> dict[GroupKey, list[Planned]]:
        made = {key for base in self.bases.values() for key in base.groups()}
        groups: dict[GroupKey, list[Planned]] = {}
        for planned in parsed(PLAN.read_text()):
            if planned.base in made:
                key = replace(planned.base, source=self.name, dtype=planned.dtype)
                groups.setdefault(key, []).append(planned)
        return groups


def parsed(text: str) -> tuple[Planned, ...]:
    """The cases of a plan's text."""
    planned = []
    for first, *lines in (group.splitlines() for group in text.split("\n\n") if group):
        source, operator, variant, base_dtype = first.split("\t")
        base = GroupKey(source, operator, variant, base_dtype, "fallback")
        for line in lines:
            call, dtype, row = line.split("\t")
            levels = (assignment.partition("=") for assignment in row.split("; ") if assignment)
            planned.append(Planned(base, call, dtype, tuple((factor, level) for factor, _, level in levels)))
    return tuple(planned)


def written(planned: Iterable[Planned]) -> str:
    """The text of a plan."""
    groups: dict[str, list[str]] = {}
    for row in planned:
        levels = "; ".join(f"{factor}={level}" for factor, level in row.levels)
        first = "\t".join((row.base.source, row.base.operator, row.base.variant, row.base.dtype))
        groups.setdefault(first, []).append("\t".join((row.call, row.dtype, levels)))
    return "\n".join("\n".join((first, *sorted(lines), "")) for first, lines in sorted(groups.items()))


def calls_of(source: CaseSource, key: GroupKey, wanted: Collection[str] = ()) -> dict[str, Case]:
    """The first calls of a group by their checksums, up to the last `wanted` one, whatever seed the generators have."""
    seed_generators(0, key.label)
    calls: dict[str, Case] = {}
    for case in islice(source.cases(key, Samples.DEFAULT), MOST_LOOKED_AT):
        calls.setdefault(checksum(case), case)
        if wanted and calls.keys() >= set(wanted):
            break
    return calls


def checksum(case: Case) -> str:
    """Of all that a call is at: the kinds of its arguments, and the shapes and layouts of its tensors."""
    return f"{zlib.crc32(repr(sorted(levels_of(case))).encode()):08x}"


def at_levels(source: CaseSource, planned: Planned, call: Case) -> Case:
    """A call in the planned dtype at the planned levels."""
    case = call if planned.dtype == planned.base.dtype else in_dtype(call, planned.base.dtype, planned.dtype)
    varied = varied_case(variations_for(source, planned, case), dict(planned.levels), [case])
    return replace(varied, title=", ".join(part for part in (call.title, varied.title) if part not in ("", PLAIN)))


def variations_for(source: CaseSource, planned: Planned, case: Case) -> tuple[Variation, ...]:
    """The variations of a sample, or of a module's or overload's call, in the planned dtype."""
    group = BaseGroup(source.base if isinstance(source, VariedSource) else source, planned.base)
    if group.opinfo is not None:
        return with_longer(group, variations_of(group.opinfo, planned.dtype))
    variations = (
        *variations_of_call(planned.base.operator, planned.dtype, case),
        *(Variation(GRADIENT, level, change) for level, change in GRADIENTS.items()),
        Variation(FORM, OUT, with_transposed_target),
    )
    return with_longer(group, variations)


def with_longer(group: BaseGroup, variations: tuple[Variation, ...]) -> tuple[Variation, ...]:
    """The variations; those of sizes make one dimension longer where the call cannot have another shape.

    Not where an operator reads beyond tensors that do not fit each other.
    """
    operator, is_schema = group.key.operator, group.base.name == "schema"
    if is_any_of(operator, UNCHECKED) or draws(operator) or (is_schema and not is_for_users(operator)):
        return variations
    change = partial(longer, operator=operator, checks=checks_sizes(group.base, operator))
    sizes = {variation.level: variation.change for variation in variations if variation.factor == SIZE}
    return (
        *(Variation(SIZE, level, partial(change, level=level, reshape=sizes.get(level))) for level in SIZES),
        *(variation for variation in variations if variation.factor != SIZE),
    )


def longer(case: Case, level: str, reshape: Change | None, operator: str, checks: bool) -> Case | None:
    """The case in the shape that `reshape` gives it, or with one dimension so long that it is at the level."""
    reshaped = reshape and reshape(case)
    if reshaped is not None:
        return reshaped
    sized = in_every_size(case, LONGER, operator, checks=checks)
    return next((large for large in sized if SIZES_AT.get(size := size_of(tensors_of(large)), size) == level), None)


def with_transposed_target(case: Case) -> Case | None:
    """A call of an out= overload with out tensors that are transposed; None for others, and if none has an order."""
    call_and_targets = schema_case(case) if "out" in case.kwargs else None
    return call_and_targets and written_in(*call_and_targets, transposed)


def in_dtype(case: Case, before: str, after: str) -> Case:
    """The call with its tensors of one dtype in another."""
    old, new = getattr(torch, before), getattr(torch, after)

    def changed(tensor: Tensor, position: int) -> Tensor:
        if tensor.dtype is not old:
            return tensor
        other = tensor.detach()
        if new.is_complex and not old.is_complex:  # real and imaginary parts differ
            other = torch.complex(other.float(), other.float().flatten().roll(1).view(other.shape))
        elif new is torch.bool:  # about as many are true as false
            other = other > 0
        return other.to(new).requires_grad_(tensor.requires_grad and (new.is_floating_point or new.is_complex))

    return map_tensors(case, changed)
