"""Covering arrays: few rows in which each valid pair of levels occurs.

covertable makes them: it completes what its greedy search leaves, where allpairspy stops early once levels exclude each
other. An array takes up to a tenth of a second, and most operators have the same few factors: each is made once.
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
    """Rows, the same ones every time, that hold every valid pair; a level of each factor in a row."""
    if len(factors) < 2:
        return tuple({factor: level} for factor, levels in factors for level in levels)
    together: dict[tuple[str, str], set[frozenset[Level]]] = {}
    for pair in excluded:
        one, other = sorted(factor for factor, _ in pair)
        together.setdefault((one, other), set()).add(pair)
    names = {factor for factor, _ in factors}
    constraints = [_never(one, other, together[one, other]) for one, other in sorted(together) if {one, other} <= names]
    made = covertable.make(dict(factors), constraints=constraints or None)
    return tuple({factor: row[factor] for factor, _ in factors} for row in made)


def _never(one: str, other: str, pairs: set[frozenset[Level]]) -> dict[str, object]:
    """That none of the pairs of levels of two factors is in a row, as covertable reads it."""

    def holds(row: Row) -> bool:
        return frozenset(((one, row[one]), (other, row[other]))) not in pairs

    return {"operator": "fn", "requires": [one, other], "evaluate": holds}
