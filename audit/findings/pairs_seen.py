"""The pairs of levels at which cases of an entry were executed, and the pairs that are possible.

The levels that covering arrays pair are counted. A pair is possible for an entry if its cases were at both levels.
Each level of an argument (a flag, a mode, the kind of a number) is also paired with each of these levels, in cases
that call the operator in a counted form: a wrapper (a row of calls, out= of another size) has different arguments.
Cases that were not executed do not count. Pairs at which the CPU refused every case are counted separately.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from itertools import combinations, product

from ..cases.covering.pairs import (
    DIMENSIONS,
    DTYPE,
    FORM,
    GIVEN,
    GRADIENT,
    LAYOUT,
    OTHER_LAYOUTS,
    SHAPES,
    SIZE,
    STORAGE,
    VALUES,
    Level,
    Levels,
    Pair,
    pairs_of,
)
from ..model.group import GroupKey, own_dtype
from ..store.records import Covered
from .results import PairsSeen

FLOATING = ("float32", "float16", "bfloat16", "complex64")
INTEGERS = ("int8", "int16", "int32", "int64", "uint8", "bool")
FLOATING_VALUES = ("nan", "infinities", "largest finite")
INTEGER_VALUES = ("extreme integers",)
WITH_GRADIENT = ("all", "subset")
WRITING = ("in place", "out= transposed")
COUNTED: Mapping[str, tuple[str, ...]] = {
    DTYPE: (*FLOATING, *INTEGERS),
    LAYOUT: ("contiguous", "transposed", "offset", "stepped", "expanded", "channels last"),
    OTHER_LAYOUTS: ("contiguous", "transposed", "offset", "expanded"),
    SIZE: ("small", "over 1,024 rows", "over 65,536"),
    VALUES: ("plain", *FLOATING_VALUES, *INTEGER_VALUES),
    FORM: ("plain", *WRITING),
    GRADIENT: ("none", *WITH_GRADIENT),
}
# Kernels that change their ways above 131,072 elements have done so above 65,536 too.
COUNTED_AS = {(SIZE, "over 131,072"): (SIZE, "over 65,536")}
COUNTED_LEVELS = {(factor, level): (factor, level) for factor, levels in COUNTED.items() for level in levels}
COUNTED_LEVELS.update(COUNTED_AS)

# What is given by name to a call that has targets. With them no call has a gradient, nor is one in place.
TARGETS = re.compile(r"\bout\d?\b")
WITHOUT_TARGETS = ((FORM, "in place"), *((GRADIENT, level) for level in WITH_GRADIENT))

OF_TENSORS = frozenset({*COUNTED, DIMENSIONS, STORAGE})

WITHOUT_ORDER = ("others of 0 dimensions", "others of 1 dimensions", "others of 0, 1 dimensions")
# Levels that no case can combine: a factor with its levels, and another factor with its levels.
IMPOSSIBLE: tuple[tuple[str, tuple[str, ...], str, tuple[str, ...]], ...] = (
    (DTYPE, INTEGERS, VALUES, FLOATING_VALUES),
    (DTYPE, (*FLOATING, "bool"), VALUES, INTEGER_VALUES),
    (DTYPE, INTEGERS, GRADIENT, WITH_GRADIENT),
    (VALUES, (*FLOATING_VALUES, *INTEGER_VALUES), GRADIENT, WITH_GRADIENT),
    (FORM, WRITING, GRADIENT, WITH_GRADIENT),
    (FORM, ("in place",), LAYOUT, ("expanded",)),
    # A tensor of one dimension has no order of dimensions, and a tensor of none has no strides.
    (SHAPES, ("others of 0 dimensions",), OTHER_LAYOUTS, ("transposed", "expanded")),
    (SHAPES, WITHOUT_ORDER, OTHER_LAYOUTS, ("transposed",)),
)
IMPOSSIBLE_PAIRS = {
    frozenset(((factor, level), (other_factor, other_level)))
    for factor, levels, other_factor, other_levels in IMPOSSIBLE
    for level in levels
    for other_level in other_levels
}


def pairs_seen(covered: Iterable[Covered]) -> dict[str, PairsSeen]:
    """The pairs that the cases of each entry were at, by the name of the entry, over all sources and dtypes."""
    seen: dict[str, set[Pair]] = {}
    with_arguments: defaultdict[str, set[Pair]] = defaultdict(set)
    refused: defaultdict[str, set[Pair]] = defaultdict(set)
    tensors: defaultdict[str, set[Level]] = defaultdict(set)
    for group in covered:
        name = entry_name(group.group)
        of_entry = seen.setdefault(name, set())
        for levels, of_arguments in ((group.levels, with_arguments[name]), (group.refused, refused[name])):
            for own, arguments in {
                (counted(group.group, case_levels), argument_levels(case_levels)) for case_levels in levels
            }:
                of_arguments.update(product(arguments, own))
                if levels is group.levels:
                    of_entry.update(pairs_of(own))
            tensors[name].update(*map(tensor_levels, levels))
    return {
        name: _summed(pairs, with_arguments[name], refused[name], tensors[name])
        for name, pairs in seen.items()
        if pairs
    }


def argument_levels(levels: Levels) -> Levels:
    """Of a case's levels those of its arguments: kinds of values, which are given, the shapes of its tensors."""
    return tuple(level for level in _of_arguments(levels) if "tensor" not in level[1])


def tensor_levels(levels: Levels) -> Levels:
    """Of a case's levels those of its arguments that are tensors, or hold some."""
    return tuple(level for level in _of_arguments(levels) if "tensor" in level[1])


def _of_arguments(levels: Levels) -> Iterator[Level]:
    if all(factor != FORM or form in COUNTED[FORM] for factor, form in levels):
        yield from (level for level in levels if level[0] not in OF_TENSORS)


def possible_with_arguments(seen: Iterable[Pair], tensors: Iterable[Level]) -> set[Pair]:
    """The possible pairs of a level of an argument and a level of a tensor.

    Args:
        seen: the pairs that an entry's cases had.
        tensors: all `tensor_levels` of its cases.
    """
    arguments, own = ({pair[side] for pair in seen} for side in (0, 1))
    several: defaultdict[str, bool] = defaultdict(bool)
    for place, kind in tensors:
        several[place] |= kind not in ("tensor", "1 of tensor")
    alone = {level for level in arguments if not _leaves_others(level, several)}
    given = {level for level in arguments if level[0] == GIVEN}
    targets = {level for level in given if TARGETS.search(level[1])}
    excluded = set(product(targets, WITHOUT_TARGETS))
    if targets and targets == given:  # the targets are among the others
        excluded.update(((SHAPES, shapes), (FORM, "out= transposed")) for shapes in WITHOUT_ORDER)
    pairs = (pair for pair in product(arguments, own) if frozenset(pair) not in IMPOSSIBLE_PAIRS)
    return {pair for pair in pairs if pair[1][0] != OTHER_LAYOUTS or pair[0] not in alone} - excluded


def _leaves_others(argument: Level, several: Mapping[str, bool]) -> bool:
    """Whether a call with this level of an argument can have a second tensor."""
    factor, level = argument
    if factor == SHAPES:
        return True
    places = set(several) - {factor}
    if factor == GIVEN:
        count, *names = level.split()
        places &= {*map(str, range(int(count))), *names}
    return len(places) > 1 or any(several[place] for place in places)


def entry_name(key: GroupKey) -> str:
    """The name of the entry that a group belongs to, as summaries have it."""
    return f"{key.operator}.{key.variant}" if key.variant else key.operator


def counted(group: GroupKey, levels: Levels) -> Levels:
    """Those of a case's levels that are counted. The dtype is the group's if one of the case's tensors has it."""
    tensors = [dtype for factor, level in levels if factor == DTYPE for dtype in level.split(", ")]
    dtype = own_dtype(group.dtype, group.source, tensors)
    others = (COUNTED_LEVELS[level] for level in levels if level in COUNTED_LEVELS and level[0] != DTYPE)
    own = COUNTED_LEVELS.get((DTYPE, dtype))
    return tuple(sorted((*others, *([own] if own else []))))


def _summed(seen: set[Pair], with_arguments: set[Pair], refused: set[Pair], tensors: Iterable[Level]) -> PairsSeen:
    alone = sorted({level for pair in seen for level in pair})
    missing: dict[str, list[str]] = {}
    possible = 0
    for first, second in combinations(alone, 2):
        if first[0] == second[0] or frozenset((first, second)) in IMPOSSIBLE_PAIRS:
            continue
        possible += 1
        if (first, second) not in seen:
            missing.setdefault(_spelled(first), []).append(_spelled(second))
    seen_count = possible - sum(map(len, missing.values()))
    with_all = possible_with_arguments(with_arguments, tensors)
    return PairsSeen(
        seen_count,
        possible,
        {level: tuple(others) for level, others in missing.items()},
        with_arguments=len(with_arguments),
        possible_with_arguments=len(with_all),
        refused_with_arguments=len(refused & with_all - with_arguments),
    )


def _spelled(level: Level) -> str:
    return f"{level[0]} {level[1]}"
