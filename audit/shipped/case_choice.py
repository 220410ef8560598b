"""Chooses the cases of a group that run through shipped kernels, the same on every machine. Imports no torch.

Layout, size, values and gradients decide which kernel a call launches and which branch the kernel takes. A case is
chosen if it has a level of one of these factors that fewer than PER_LEVEL earlier cases of its group had.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from ..cases.covering.pairs import DTYPE, FORM, GRADIENT, LAYOUT, OTHER_LAYOUTS, SHAPES, SIZE, VALUES, Level, Levels
from ..model.selection import ShippedSamples

PER_LEVEL = 1
# With more input elements the host takes too long for a GPU kernel.
MOST_ELEMENTS = 1 << 20
# All cases of these run: each report of a user has its particular values, each call of the others its own kernel.
WHOLE_SOURCES = frozenset({"known wrong", "large known wrong", "kernel sizes", "schema element-wise kernels"})
FACTORS = frozenset({DTYPE, FORM, LAYOUT, OTHER_LAYOUTS, SIZE, SHAPES, VALUES, GRADIENT})


def positions_through_shipped(
    source: str, levels: Mapping[int, Levels], elements: Mapping[int, int], samples: ShippedSamples
) -> frozenset[int]:
    """The positions of the cases of a group that run through shipped kernels; the others keep the stand-ins.

    Args:
        source: the case source of the group.
        levels: of each case, by position.
        elements: the number of input elements of each case, by position.
        samples: whether all cases are to run.
    """
    if samples is ShippedSamples.ALL:
        return frozenset(levels)
    affordable = [position for position in sorted(levels) if elements[position] <= MOST_ELEMENTS]
    if source in WHOLE_SOURCES:
        return frozenset(affordable)
    seen: Counter[Level] = Counter()
    taken = set()
    for position in affordable:
        kinds = [level for level in levels[position] if level[0] in FACTORS]
        if not kinds or any(seen[level] < PER_LEVEL for level in kinds):
            taken.add(position)
            seen.update(kinds)
    return frozenset(taken)
