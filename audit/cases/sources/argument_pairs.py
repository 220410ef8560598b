"""Other arguments paired with layouts, sizes, special values and dtypes.

The source of arguments changes one argument at a time, in one dtype and on contiguous tensors; the sources that vary
tensors keep the arguments of one call. A kernel may be wrong only for `dim=0` of a transposed tensor, or for `beta=0`
in half precision. Here calls with other arguments come at other layouts, sizes and classes of values, each of these in
one dtype, another one for each operator: at those that bring the most pairs of both.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from fnmatch import fnmatchcase
from itertools import islice, product
from typing import Any

import torch

from ...model.case import Case
from ...model.group import GroupKey
from ..calls.binding import Binding
from ..calls.invocation import full_name
from ..covering.array import Row
from ..covering.levels import kind_of, levels_of
from ..covering.pairs import DTYPE, LAYOUT, OTHER_LAYOUTS, VALUES, Level, Levels, Pair, argument_levels
from .arguments import ArgumentChanges, divides_by_zero, is_small, is_varied, shown
from .case_tensors import accepts, tensors_of
from .derived import LOOKED_AT_FOR_KINDS, BaseGroup, Factor, representative, rotated, turn_of
from .pairs import FLOATING
from .schema_sizes import grown
from .tensor_layouts import KERNEL_DIES
from .variations import PLAIN, Variation, variations_of_call, varied_case
from .write_targets import STRIDES_IGNORED

# CPU kernels that end the process, return their input itself, choose the strides of an out tensor that they resize, or
# raise factors beyond one to high powers: there is nothing to compare with.
UNPAIRED = ("_fused_ada*", "native_channel_shuffle", "_upsample_*_aa.out", "grid_sampler_2d_backward*", "lu_unpack*")
# A CPU kernel that reads its tensors as if they were contiguous: its arguments are paired with all but layouts.
CONTIGUOUS = "_fused_sgd*"
# At most so many recorded calls, calls with all arguments changed, and cases of a group.
MOST_CALLS = 6
MOST_CHANGED = 8
MOST_CASES = 40


def _applies(group: BaseGroup) -> bool:
    """Each dtype of the overloads whose arguments are varied, and whose CPU kernels say what is right."""
    operator = group.key.operator
    if operator in KERNEL_DIES | STRIDES_IGNORED or any(fnmatchcase(operator, each) for each in UNPAIRED):
        return False
    return is_varied(operator) and not divides_by_zero(operator, group.key.dtype)


def calls_of_each_kind(group: BaseGroup, cases: Iterable[Case]) -> list[Case]:
    """The representative call of a group, and the first ones that are at other levels of arguments."""
    small = [case for case in islice(cases, LOOKED_AT_FOR_KINDS) if not case.skipped and not case.errors_count]
    small = [case for case in small if is_small(case) and is_filled(case)]
    first = representative(small)
    known: set[Level] = set()
    chosen: list[Case] = []
    for case in [] if first is None else [first, *small]:
        levels = argument_levels(levels_of(case))
        if len(chosen) < MOST_CALLS and not known.issuperset(levels):
            known.update(levels)
            chosen.append(case)
    return chosen


def is_filled(case: Case) -> bool:
    """Whether there is a tensor, and none without elements."""
    return bool(tensors_of(case)) and all(tensor.numel() for tensor in tensors_of(case))


def _variations(group: BaseGroup, cases: Sequence[Case]) -> Iterator[Case]:
    """The calls that bring the most pairs; the CPU accepts each."""
    key, calls = group.key, [case for case in map(grown, cases) if accepts(case)]
    if not calls:
        return
    without = (LAYOUT, OTHER_LAYOUTS) if fnmatchcase(key.operator, CONTIGUOUS) else ()
    variations = [v for v in variations_of_call(key.operator, key.dtype, calls[0]) if v.factor not in without]
    met = {pair for case in calls for pair in pairs_at(key, case)}
    changed = with_changed_arguments(key, calls[0])
    yield from at_further_pairs(key, [*changed, *calls], variations, levels_in(group, variations), met)


# Recorded calls of each overload with other arguments, at levels of the other factors.
ARGUMENT_PAIR_FACTOR = Factor("argument pairs", _variations, _applies, choose=calls_of_each_kind)


# ---- arguments


def with_changed_arguments(key: GroupKey, case: Case) -> Iterator[Case]:
    """One call with all of its arguments changed, then each alone: which are given is a level too."""
    name = full_name(key.operator)
    values = values_by_argument(ArgumentChanges(name, case))
    binding, turn = Binding(name, case.args, case.kwargs), turn_of(key)

    def changed(others: Mapping[str, Any]) -> Case:
        args, kwargs = binding.with_others(others)
        title = ", ".join(f"{argument}={shown(value)}" for argument, value in others.items())
        return replace(case, args=args, kwargs=kwargs, title=title, elementwise=False)

    for number in range(min(MOST_CHANGED, max(map(len, values.values()), default=0))):
        together = combined(values, turn + number)
        all_at_once = changed(together)
        if accepts(all_at_once):
            yield all_at_once
        else:
            yield from (changed({argument: value}) for argument, value in together.items())
    yield from (changed({argument: listed[-1]}) for argument, listed in values.items())


def values_by_argument(changes: ArgumentChanges) -> dict[str, list[Any]]:
    """The recorded value of each argument that has others, and those that the CPU accepts alone, one of each kind."""
    values: dict[str, dict[str, Any]] = {}
    for change in changes.single():
        if not change.refused:
            ((argument, value),) = change.others.items()
            recorded = changes.recorded(argument)
            values.setdefault(argument, {kind_of(recorded): recorded}).setdefault(kind_of(value), value)
    return {argument: list(by_kind.values()) for argument, by_kind in values.items()}


def combined(values: Mapping[str, list[Any]], turn: int) -> dict[str, Any]:
    """A value for each argument, others for each turn; one argument at a time may be infinite or NaN.

    With several of those all results are NaN, which any kernel gives.
    """
    infinite = turn % len(values)
    chosen = {}
    for position, (argument, listed) in enumerate(values.items()):
        candidates = [value for value in listed if position == infinite or is_finite(value)]
        chosen[argument] = rotated(candidates or listed[:1], turn + position)[0]
    return chosen


def is_finite(value: Any) -> bool:
    """Whether a value is not an infinite or NaN number."""
    return not isinstance(value, float) or math.isfinite(value)


# ---- pairs


def levels_in(group: BaseGroup, variations: Iterable[Variation]) -> dict[str, list[str]]:
    """The levels that are paired with arguments in the group's dtype, by factor; classes of values go by its family."""
    levels: dict[str, list[str]] = {}
    for variation in variations:
        levels.setdefault(variation.factor, []).append(variation.level)
    turn = turn_of(replace(group.key, dtype=""))
    filled = dtypes_of_filled_calls(group)
    chosen = {}
    for factor, of_factor in levels.items():
        dtypes = [d for d in filled if factor != VALUES or (d in FLOATING) == (group.key.dtype in FLOATING)]
        chosen[factor] = [
            level for i, level in enumerate(of_factor) if dtypes[(turn + i) % len(dtypes)] == group.key.dtype
        ]
    return chosen


def dtypes_of_filled_calls(group: BaseGroup) -> list[str]:
    """The dtypes in which the base has such calls: kernels that refuse a dtype may take empty tensors of it."""
    with torch.random.fork_rng(devices=[]):
        groups = [replace(group, key=replace(group.key, dtype=dtype)) for dtype in group.dtypes]
        return [each.key.dtype for each in groups if any(map(is_filled, islice(each.cases(), LOOKED_AT_FOR_KINDS)))]


def pairs_at(key: GroupKey, case: Case) -> set[Pair]:
    """The pairs of a level of an argument and one of the tensors that a case is at."""
    levels = levels_of(case)
    of_tensors = (level for level in levels if level[0] != DTYPE)
    return set(product(argument_levels(levels), [(DTYPE, key.dtype), *of_tensors]))


def at_further_pairs(
    key: GroupKey,
    calls: Sequence[Case],
    variations: Sequence[Variation],
    levels: Mapping[str, Sequence[str]],
    met: set[Pair],
) -> Iterator[Case]:
    """The calls, each time the one with the row of levels that brings the most pairs, until none brings any."""
    arguments = [argument_levels(levels_of(call)) for call in calls]
    own = (DTYPE, key.dtype)
    of_tensors = [own, *((factor, level) for factor, of_factor in levels.items() for level in of_factor)]
    wanted = set(product({level for each in arguments for level in each}, of_tensors)) - met
    tried: set[tuple[int, Levels]] = set()
    made = 0
    while made < MOST_CASES:
        new, position, row = max(
            (_best_row(each, own, levels, wanted, position) for position, each in enumerate(arguments)),
            key=lambda found: found[0],
            default=(0, 0, {}),
        )
        if not new:
            return
        for some in (row, *({factor: level} for factor, level in row.items()), {}):  # alone, if not together
            attempt = position, tuple(some.items())
            varied = None if attempt in tried else made_at(calls[position], variations, some)
            tried.add(attempt)
            brought = pairs_at(key, varied) & wanted if varied is not None else set()
            if varied is not None and brought:
                made += 1
                wanted -= brought
                yield varied
                break
        else:
            wanted -= set(product(arguments[position], (own, *row.items())))


def made_at(call: Case, variations: Sequence[Variation], row: Row) -> Case | None:
    """The call at a row of levels; None if the CPU refuses it, or C++ leaves undefined what integer a value becomes."""
    dtype = call.kwargs.get("dtype")
    if VALUES in row and isinstance(dtype, torch.dtype) and not dtype.is_floating_point:
        return None
    varied = varied_case(variations, row, [call])
    title = ", ".join(part for part in (call.title, varied.title) if part not in ("", PLAIN))
    return replace(varied, title=title) if accepts(varied) else None


def _best_row(
    arguments: Sequence[Level], own: Level, levels: Mapping[str, Sequence[str]], wanted: set[Pair], position: int
) -> tuple[int, int, Row]:
    """How many wanted pairs a call brings at its best levels, its position, and these levels."""
    new, row = sum((each, own) in wanted for each in arguments), {}
    for factor, of_factor in levels.items():
        counts = {level: sum((each, (factor, level)) in wanted for each in arguments) for level in of_factor}
        best = max(counts, key=counts.__getitem__, default=PLAIN)
        if counts.get(best):
            row[factor] = best
            new += counts[best]
    return new, position, row
