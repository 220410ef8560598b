"""Pairs of levels: each row of a covering array of an operator as a case.

Many faults need two levels at once: float16 and transposed, in place and NaN, int64 and more than 65,536 elements. The
other derived sources vary one factor at a time. `variations` has the functions that bring a case to a level.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, islice
from typing import Any

from ...model.case import Case
from ..covering.array import Excluded, Factors, covering_array, excluding
from ..covering.levels import levels_of
from ..covering.pairs import DTYPE, FORM, GRADIENT, LAYOUT, OTHER_LAYOUTS, SIZE, VALUES, Levels
from ..covering.pruning import elements
from .derived import LARGEST_TO_VARY, LOOKED_AT_FOR_KINDS, BaseGroup, Factor, representative
from .forms import takes_out
from .opinfo import ELEMENTWISE
from .unsafe_values import excluded
from .variations import (
    BASE,
    FLOATING_VALUES,
    GRADIENTS,
    IN_PLACE,
    INTEGER_VALUES,
    LAYOUTS,
    LAYOUTS_OF_OTHERS,
    OUT,
    PLAIN,
    SIZES,
    raised,
    variations_of,
    varied_case,
)

# So many samples of a group are varied: a representative one, and others for their flags. Samplers of elementwise
# operators may have one dimension alone: they get one of these shapes, in which no two layouts are the same.
SHAPES = ((2, 3, 4, 5), (4, 5), (3, 2, 5, 4), (2, 4, 3, 5))
# Forms that write come in more dimensions too than a kernel may have counted with.
MANY_DIMENSIONS = (2, 3, 2, 2, 3, 2)
MOST_BASES = len(SHAPES)

FLOATING = ("float32", "float16", "bfloat16", "complex64")
INTEGERS = ("int8", "int16", "int32", "int64", "uint8", "bool")
FAMILIES = (FLOATING, INTEGERS)


def _variations(group: BaseGroup, bases: Sequence[Case]) -> Iterator[Case]:
    """The rows of the group's dtype in covering arrays over the dtypes of its kind, each kind of case once."""
    op, dtype = group.opinfo, group.key.dtype
    if not bases or bases[0].uninitialised:
        return
    if takes_any_shape(op):
        shapes = (*SHAPES[: len(bases)], MANY_DIMENSIONS)
        bases = [raised(case, shape) for case, shape in zip((*bases, bases[0]), shapes, strict=True)]
    variations = variations_of(op, dtype)
    family = next(family for family in FAMILIES if dtype in family)
    models = models_of(op, tuple(group_dtype for group_dtype in group.dtypes if group_dtype in family))
    seen: set[Levels] = set()
    for row in chain.from_iterable(covering_array(model, EXCLUDED) for model in models):
        if row[DTYPE] == dtype:
            case = varied_case(variations, row, bases)
            levels = levels_of(case)
            if levels not in seen:
                seen.add(levels)
                yield case


def distinct_flags(cases: Iterable[Case], most: int) -> list[Case]:
    """The representative case among a group's first cases, and each further case that adds a level."""
    looked_at = [case for case in islice(cases, LOOKED_AT_FOR_KINDS) if not case.skipped and not case.errors_count]
    small = [case for case in looked_at if 0 < elements(case) <= LARGEST_TO_VARY]
    first = representative(small)
    if first is None:
        return []
    bases, seen_levels = [first], set(levels_of(first))
    for case in small:
        levels = levels_of(case)
        if len(bases) < most and not seen_levels.issuperset(levels):
            seen_levels.update(levels)
            bases.append(case)
    return bases


PAIR_FACTOR = Factor("pairs", _variations, choose=lambda group, cases: distinct_flags(cases, MOST_BASES))


def takes_any_shape(op: Any) -> bool:
    """Whether the operator of an OpInfo is elementwise or a reduction."""
    return type(op).__name__ in (*ELEMENTWISE, "ReductionOpInfo")


# ---- the factors of an operator

# Gradients at special values differ between correct implementations.
EXCLUDED: Excluded = excluding((GRADIENT, tuple(GRADIENTS), VALUES, (*FLOATING_VALUES, *INTEGER_VALUES)))
# Each form is an overload with its own kernel, so what is paired with the functional one says nothing about it. Every
# dtype has been in every layout once, in the source of layouts; of integers, which are many, few are paired again.
LAYOUTS_OF_INTEGERS = ("transposed", "stepped", "expanded")
LAYOUTS_OF_FORMS = ("transposed", "stepped")
# The CPU's kernel reads these weights as if they were contiguous, beyond their memory: nothing to compare with.
STRIDES_OF_WEIGHTS_IGNORED = frozenset({"native_group_norm"})


def others_of_forms(op: Any, dtypes: tuple[str, ...]) -> tuple[str, ...]:
    """The layouts of all tensors but the first in forms that write; complex ones come conjugated too."""
    if op.name in STRIDES_OF_WEIGHTS_IGNORED:
        return (PLAIN,)
    return (PLAIN, "transposed", *(("conjugated",) if "complex64" in dtypes else ()))


def models_of(op: Any, dtypes: tuple[str, ...]) -> Iterator[Factors]:
    """The factors of an operator over the dtypes of one kind: called as it is, then in its other forms."""
    floating = dtypes[0] in FLOATING
    regular = takes_any_shape(op)
    classes = (FLOATING_VALUES if floating else INTEGER_VALUES) if regular else ()
    special = [values for values in classes if not any(excluded(op.name, dtype, values) for dtype in dtypes)]
    factors = {
        DTYPE: dtypes,
        BASE: tuple(map(str, range(MOST_BASES))),
        LAYOUT: (PLAIN, *(LAYOUTS if floating else LAYOUTS_OF_INTEGERS)),
        OTHER_LAYOUTS: (PLAIN,) if op.name in STRIDES_OF_WEIGHTS_IGNORED else (PLAIN, *LAYOUTS_OF_OTHERS),
        SIZE: (PLAIN, *(SIZES if regular else ())),
        VALUES: (PLAIN, *special),
        GRADIENT: (PLAIN, *(GRADIENTS if floating and op.supports_autograd else ())),
    }
    yield tuple(factors.items())
    forms = (*((IN_PLACE,) if op.inplace_variant is not None else ()), *((OUT,) if takes_out(op) else ()))
    if forms:
        fewer = {
            BASE: ("0", "-1" if regular else "1"),
            LAYOUT: (PLAIN, *LAYOUTS_OF_FORMS),
            OTHER_LAYOUTS: others_of_forms(op, dtypes),
        }
        yield tuple((factors | fewer | {GRADIENT: (PLAIN,), FORM: forms}).items())
