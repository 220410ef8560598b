"""Covering arrays: few rows in which each valid pair of levels occurs.

covertable makes them: unlike allpairspy it reaches every pair if some levels exclude each other. An array takes up to a
tenth of a second, and most operators have the same few factors, so arrays are cached.
"""

from __future__ import annotations

from functools import cache

import covertable

from .pairs import Level

# The factors in their order with their levels; the first level of each is the plain one.
Factors = tuple[tuple[str, tuple[str, ...]], ...]
# Pairs of levels that exclude each other, either way round.
Excluded = frozenset[frozenset[Level]]
Row = dict[str, str]


def excluding(*pairs: tuple[str, tuple[str, ...], str, tuple[str, ...]]) -> Excluded:
    """The pairs of any of the levels of one factor with any of the levels of another."""
    return frozenset(
        frozenset(((factor, level), (other_factor, other_level)))
        for factor, levels, other_factor, other_levels in pairs
        for level in levels
        for other_level in other_levels
    )


@cache
def covering_array(factors: Factors, excluded: Excluded = frozenset()) -> tuple[Row, ...]:
    """Rows that contain every valid pair, with one level for each factor in a row; the same rows every time."""
    if len(factors) < 2:
        return tuple({factor: level} for factor, levels in factors for level in levels)
    together: dict[tuple[str, str], set[frozenset[Level]]] = {}
    for pair in excluded:
        first, second = sorted(factor for factor, _ in pair)
        together.setdefault((first, second), set()).add(pair)
    names = {factor for factor, _ in factors}
    constraints = [
        _no_row_with(first, second, together[first, second])
        for first, second in sorted(together)
        if {first, second} <= names
    ]
    rows = covertable.make(dict(factors), constraints=constraints or None)
    return tuple({factor: row[factor] for factor, _ in factors} for row in rows)


def _no_row_with(first: str, second: str, pairs: set[frozenset[Level]]) -> dict[str, object]:
    """The constraint for covertable: no row contains one of these pairs of levels of two factors."""

    def holds(row: Row) -> bool:
        return frozenset(((first, row[first]), (second, row[second]))) not in pairs

    return {"operator": "fn", "requires": [first, second], "evaluate": holds}
