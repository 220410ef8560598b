"""Differences between two audits, case by case: none for the same code, few for another release or a fix."""

from __future__ import annotations

import sqlite3
from collections import Counter
from contextlib import closing
from dataclasses import dataclass, field
from typing import Any

from ..model.group import GroupKey
from ..model.verdicts import CaseVerdict
from .connection import address_to_read, clear_errors
from .records import Run
from .schema import BY_NAME
from .store import Store


@dataclass(frozen=True)
class CaseDifference:
    """One case that differs between two audits.

    Attributes:
        label: the case's label, as in `mpsmith replay`.
        before, after: the verdicts; None if an audit has no such case.
        inputs_differ: the case at this position has different inputs, so that the verdicts are of different calls.
    """

    label: str
    before: CaseVerdict | None
    after: CaseVerdict | None
    inputs_differ: bool = False

    @property
    def kind(self) -> str:
        """How the case changed, for people: "only before", "only after", "other inputs", "passed -> wrong"."""
        if self.after is None:
            return "only before"
        if self.before is None:
            return "only after"
        change = f"{self.before.value} -> {self.after.value}"
        return f"other inputs, {change}" if self.inputs_differ else change


@dataclass
class RunComparison:
    """Two audits side by side.

    Attributes:
        before, after: how many cases each recorded.
        same: cases in both with the same inputs and the same verdict.
        differences: all others, in the order of the first audit, then those that only the second has.
    """

    before: int = 0
    after: int = 0
    same: int = 0
    differences: list[CaseDifference] = field(default_factory=list)

    @property
    def by_kind(self) -> Counter[str]:
        """The number of differences of each kind."""
        return Counter(difference.kind for difference in self.differences)


# The groups of one side by name, each with the group of that name on the other side, if it has one.
_PAIRS = f"""
CREATE TABLE {{table}} AS
SELECT g.id AS mine, o.id AS theirs, g.source, g.operator, g.variant, g.dtype, g.mode
FROM {{mine}}.groups g LEFT JOIN {{theirs}}.groups o ON o.run = ? AND o.source = g.source AND o.operator = g.operator
    AND o.variant = g.variant AND o.dtype = g.dtype AND o.mode = g.mode
WHERE g.run = ? ORDER BY {BY_NAME}
"""
_NUMBER_OF_CASES = "SELECT count(*) FROM {table} p CROSS JOIN {mine}.cases c ON c.group_id = p.mine"
_KEY = "p.source, p.operator, p.variant, p.dtype, p.mode, c.position"
_OTHER_ROWS = f"""
SELECT {_KEY}, c.verdict, n.verdict, n.inputs <> c.inputs
FROM old p CROSS JOIN before.cases c ON c.group_id = p.mine
    LEFT JOIN after.cases n ON n.group_id = p.theirs AND n.position = c.position
WHERE n.id IS NULL OR n.verdict <> c.verdict OR n.inputs <> c.inputs ORDER BY p.rowid, c.position
"""
_ONLY_AFTER = f"""
SELECT {_KEY}, NULL, c.verdict, NULL FROM new p CROSS JOIN after.cases c ON c.group_id = p.mine
WHERE NOT EXISTS (SELECT 1 FROM before.cases o WHERE o.group_id = p.theirs AND o.position = c.position)
ORDER BY p.rowid, c.position
"""


def compare_runs(before: tuple[Store, Run], after: tuple[Store, Run]) -> RunComparison:
    """Compare every case of two audits; cases are matched by group and position.

    Cases whose inputs differ are differences, too, whatever their verdicts: they are not the same case.
    SQLite compares them, so that only the rows that differ are fetched.
    """
    with closing(sqlite3.connect(":memory:", uri=True)) as connection:
        for name, (store, _) in (("before", before), ("after", after)):
            with clear_errors(store.path):
                connection.execute(f"ATTACH ? AS {name}", (address_to_read(store.path),))
        with clear_errors(f"{before[0].path} or {after[0].path}"):
            return _compared(connection, before[1].id, after[1].id)


def _compared(connection: sqlite3.Connection, before: int, after: int) -> RunComparison:
    counts = []
    for table, mine, theirs, runs in (
        ("old", "before", "after", (after, before)),
        ("new", "after", "before", (before, after)),
    ):
        names = {"table": table, "mine": mine, "theirs": theirs}
        connection.execute(_PAIRS.format(**names), runs)
        counts += connection.execute(_NUMBER_OF_CASES.format(**names)).fetchone()
    differences = [_difference(row) for query in (_OTHER_ROWS, _ONLY_AFTER) for row in connection.execute(query)]
    changed = sum(difference.before is not None for difference in differences)
    return RunComparison(counts[0], counts[1], counts[0] - changed, differences)


def _difference(row: tuple[Any, ...]) -> CaseDifference:
    *key, position, before, after, inputs_differ = row
    return CaseDifference(
        GroupKey(*key).label_of(position),
        CaseVerdict(before) if before else None,
        CaseVerdict(after) if after else None,
        inputs_differ=bool(inputs_differ),
    )
