"""Factors, levels and pairs of levels that the cases of an operator shall cover. Imports no torch.

A level is one value of a factor: float16 of the dtype, transposed of the layout. A fault often needs two factors
together (float16 and transposed, in place and NaN), so coverage is counted in pairs of levels.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import combinations

# The factors of every case; a flag is a further factor, named by its keyword or position.
DTYPE, LAYOUT, OTHER_LAYOUTS = "dtype", "layout", "other layouts"
SIZE, DIMENSIONS, SHAPES, STORAGE = "size", "dimensions", "shapes", "storage"
VALUES, FORM, GRADIENT, GIVEN = "values", "form", "gradient", "given"

Level = tuple[str, str]
Pair = tuple[Level, Level]
# What a case is at: a level of each factor.
Levels = tuple[Level, ...]
# In a store, one more level of a case that the CPU refuses, or whose result it leaves undefined.
REFUSED_BY_CPU: Level = ("refused", "by the CPU")


def pairs_of(levels: Iterable[Level]) -> Iterator[Pair]:
    """Every pair of the levels, in an order that does not depend on the order of `levels`."""
    return combinations(sorted(levels), 2)
