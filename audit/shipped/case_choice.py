"""Chooses the cases of a group that run through shipped kernels, the same on every machine. Imports no torch.

Layout, size, values and gradients decide which kernel a call launches and which branch the kernel takes. A case is
chosen if it has a level of one of these factors that fewer than PER_LEVEL earlier cases of its group had.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING

from ..cases.covering.pairs import DTYPE, FORM, GRADIENT, LAYOUT, OTHER_LAYOUTS, SHAPES, SIZE, VALUES, Level, Levels
from ..model.selection import ShippedSamples

if TYPE_CHECKING:
    from ...simulator.metal.modes import Mode

PER_LEVEL = 1
# With more input elements the host takes too long for a GPU kernel.
MOST_ELEMENTS = 1 << 20
# All cases of these run: each report of a user has its particular values, each call of the others its own kernel.
WHOLE_SOURCES = frozenset({"known wrong", "large known wrong", "kernel sizes", "schema element-wise kernels"})
# Sources of unvaried calls. The first case of each group is `checked`, and of the second the `schedules` are compared.
CHECKED_SOURCES = frozenset({"opinfo", "modules", "schema", "kernel sizes"})
MODES: tuple[Mode, ...] = ("checked", "schedules")
FACTORS = frozenset({DTYPE, FORM, LAYOUT, OTHER_LAYOUTS, SIZE, SHAPES, VALUES, GRADIENT})


def positions_through_shipped(
    source: str, levels: Mapping[int, Levels], elements: Mapping[int, int], samples: ShippedSamples
) -> frozenset[int]:
    """The positions of the cases of a group that run through shipped kernels; the others keep the stand-ins.

    Args:
        source: the case source of the group.
        levels: the levels of each case, by position.
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


def modes_of_cases(source: str, positions: Collection[int]) -> dict[int, Mode]:
    """The checking modes of those cases of a group whose kernels do not run in the mode `fast`, by position.

    Args:
        source: the case source of the group.
        positions: the cases that run through shipped kernels.
    """
    return dict(zip(sorted(positions), MODES, strict=False)) if source in CHECKED_SOURCES else {}
