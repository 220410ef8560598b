"""Other arguments paired with layouts, sizes, special values and dtypes.

The source `arguments` changes one argument at a time, in one dtype and on contiguous tensors. A kernel may be wrong
only for `dim=0` of a transposed tensor, or for `beta=0` in half precision. Here all arguments of a call change at
once, and so do the size, layout and class of values of its tensors.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from fnmatch import fnmatchcase
from typing import Any

from ....registry.files import full_name
from ...model.case import Case
from ...model.group import GroupKey
from ..calls.binding import Binding
from ..covering.array import Row
from ..covering.levels import kind_of
from ..covering.pairs import LAYOUT, OTHER_LAYOUTS
from .arguments import ArgumentChanges, divides_by_zero, is_small, shown, varied_dtypes
from .case_tensors import accepts
from .derived import BaseGroup, Factor, distinct, first_variation_of, rotated
from .schema_sizes import grown
from .tensor_layouts import KERNEL_DIES
from .variations import PLAIN, Variation, variations_of_call, varied_case
from .write_targets import STRIDES_IGNORED

# CPU kernels that end the process, return their input itself, choose the strides of an out tensor that they resize, or
# raise factors beyond one to high powers: there is nothing to compare with.
UNPAIRED = ("_fused_ada*", "native_channel_shuffle", "_upsample_*_aa.out", "grid_sampler_2d_backward*")
# A CPU kernel that reads its tensors as if they were contiguous: its arguments are paired with all but layouts.
CONTIGUOUS = "_fused_sgd*"
# At most so many cases of a dtype; another dtype begins with other values.
MOST_ROWS = 6
# The source of arguments has each value in the main dtype: here it has each at so many other levels.
LEVELS_IN_MAIN_DTYPE = 2


def _applies(group: BaseGroup) -> bool:
    """Each dtype of the overloads whose arguments are varied, and whose CPU kernels say what is right."""
    operator = group.key.operator
    if operator in KERNEL_DIES | STRIDES_IGNORED or any(fnmatchcase(operator, pattern) for pattern in UNPAIRED):
        return False
    return bool(varied_dtypes(group)) and not divides_by_zero(operator, group.key.dtype)


def _variations(group: BaseGroup, cases: Sequence[Case]) -> Iterator[Case]:
    """As many cases as the argument with the most values has, up to a limit; the CPU accepts each."""
    is_main = group.key.dtype == varied_dtypes(group)[0]
    for case in filter(accepts, map(grown, cases)):
        yield from with_changed_arguments(group.key, case, LEVELS_IN_MAIN_DTYPE if is_main else 1)


# Recorded calls of each overload with all arguments changed, at other levels of the other factors.
ARGUMENT_PAIR_FACTOR = Factor(
    "argument pairs", _variations, _applies, choose=lambda group, cases: distinct(filter(is_small, cases), 1)
)


def with_changed_arguments(key: GroupKey, case: Case, times: int) -> Iterator[Case]:
    """One call with all of its arguments changed, `times` for each value of the argument that has the most."""
    name = full_name(key.operator)
    values = values_by_argument(ArgumentChanges(name, case))
    if not values:
        return
    binding, turn = Binding(name, case.args, case.kwargs), first_variation_of(key)
    without = (LAYOUT, OTHER_LAYOUTS) if fnmatchcase(key.operator, CONTIGUOUS) else ()
    variations = [v for v in variations_of_call(key.operator, key.dtype, case) if v.factor not in without]
    for number in range(times * min(MOST_ROWS, max(map(len, values.values())))):
        chosen = combined(values, turn + number)
        row = row_of(variations, turn, number)
        for others in (chosen, *({argument: value} for argument, value in rotated(tuple(chosen.items()), number))):
            varied = first_accepted(case, binding, others, variations, row)
            if varied is not None:
                yield varied
                break


def values_by_argument(changes: ArgumentChanges) -> dict[str, list[Any]]:
    """For each argument the recorded value, and one value of each other kind that the CPU accepts."""
    values: dict[str, dict[str, Any]] = {}
    for change in changes.single():
        if not change.refused:
            ((argument, value),) = change.others.items()
            recorded = changes.recorded(argument)
            values.setdefault(argument, {kind_of(recorded): recorded}).setdefault(kind_of(value), value)
    return {argument: list(by_kind.values()) for argument, by_kind in values.items()}


def combined(values: Mapping[str, list[Any]], turn: int) -> dict[str, Any]:
    """A value for each argument, a different one for each turn. At most one argument is infinite or NaN.

    If several were, all results would be NaN, which any kernel gives.
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


def row_of(variations: Iterable[Variation], turn: int, number: int) -> Row:
    """A level of each factor, rotated by `number` from a start that depends on operator, dtype (`turn`) and factor."""
    levels: dict[str, list[str]] = {}
    for variation in variations:
        levels.setdefault(variation.factor, [PLAIN]).append(variation.level)
    return {
        factor: rotated(of_factor, (turn >> 4 * position) + number)[0]
        for position, (factor, of_factor) in enumerate(levels.items())
    }


def first_accepted(
    case: Case, binding: Binding, others: Mapping[str, Any], variations: Iterable[Variation], row: Row
) -> Case | None:
    """The call with these arguments at the row's levels, or with plain tensors; None if the CPU refuses both."""
    args, kwargs = binding.with_others(others)
    title = ", ".join(f"{argument}={shown(value)}" for argument, value in others.items())
    changed = replace(case, args=args, kwargs=kwargs, title=title, elementwise=False)
    varied = varied_case(tuple(variations), row, [changed])
    if varied.title != PLAIN and accepts(varied):
        return replace(varied, title=f"{title}, {varied.title}")
    return changed if accepts(changed) else None
