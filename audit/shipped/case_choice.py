"""Which cases of a group run through shipped kernels: a few of each kind, the same on every machine. Imports no torch.

A kind is what decides which kernel a call takes and which way it goes inside: how the tensors lie in memory, their
size, the class of values, whether there are gradients. A case is taken as long as it has a level of one of these
factors that fewer than PER_LEVEL cases before it had, and its source is one of SOURCES.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from ..cases.covering.pairs import DTYPE, GRADIENT, LAYOUT, OTHER_LAYOUTS, SHAPES, SIZE, VALUES, Level, Levels
from ..model.selection import ShippedSamples

PER_LEVEL = 1
# Elements of a case's inputs beyond which a GPU's kernel takes the host too long.
MOST_ELEMENTS = 1 << 20
# What users reported of Macs: all of it, each case is there for its values.
WHOLE_SOURCES = frozenset({"known wrong", "large known wrong"})
# The sources in which every operator, dtype, layout, size and class of values comes. The others combine and repeat
# these, which says more of the host's code than of kernels.
SOURCES = frozenset({"opinfo", "modules", "schema", "special values", "sizes", "tensor layouts"})
FACTORS = frozenset({DTYPE, LAYOUT, OTHER_LAYOUTS, SIZE, SHAPES, VALUES, GRADIENT})


def positions_through_shipped(
    source: str, levels: Mapping[int, Levels], elements: Mapping[int, int], samples: ShippedSamples
) -> frozenset[int]:
    """The positions of the cases of a group that run through shipped kernels; the others take the stand-ins.

    Args:
        source: the case source of the group.
        levels: what each case is at, by position.
        elements: how many each case's inputs have, by position.
        samples: whether all are wanted.
    """
    if samples is ShippedSamples.ALL:
        return frozenset(levels)
    affordable = [position for position in sorted(levels) if elements[position] <= MOST_ELEMENTS]
    if source in WHOLE_SOURCES:
        return frozenset(affordable)
    if source not in SOURCES:
        return frozenset()
    seen: Counter[Level] = Counter()
    taken = set()
    for position in affordable:
        kinds = [level for level in levels[position] if level[0] in FACTORS]
        if not kinds or any(seen[level] < PER_LEVEL for level in kinds):
            taken.add(position)
            seen.update(kinds)
    return frozenset(taken)
