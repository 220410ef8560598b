"""All rows that a store holds for one group, as plain data for another store. Imports no torch.

A group's rows come from the machine that executed it and are written to the one store of an audit in one transaction,
which also marks the group as done: rows that arrive a second time, or late, change nothing.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

from ..model.group import GroupKey

# Of each table, its columns beside the group's number.
COLUMNS: dict[str, str] = {
    "cases": "position, verdict, stage, message, fallbacks, compared, max_error, backward, seconds, inputs, grade",
    "called_overloads": "overload, outermost",
    "covered": "repeating, levels",
    "looked_inside": "position, overload, call, message",
    "launches": "overload, cases, calls, kernels, stood_in",
    "host_work": "overload, calls, graphs, waits, on_cpu",
    "case_kernels": "position, kernels, ulp_sensitivity",
    "predictions": "position, fits",
    "compiled": "position, verdict, aten, kernels, graphs, breaks, recompilations, reason, line, faulty_stage, source",
}
_WIDTHS = {table: columns.count(",") + 1 for table, columns in COLUMNS.items()}
# Rows that one statement inserts: it takes two thirds of the time that as many statements take.
_TOGETHER = 20
_RECORDED = "ON CONFLICT (group_id, position) DO NOTHING"

Row = Sequence[Any]


@dataclass(frozen=True)
class GroupRows:
    """The rows of a group, by table, each with the columns of `COLUMNS`; tables without rows are left out."""

    key: GroupKey
    tables: Mapping[str, Sequence[Row]]

    @property
    def cases(self) -> int:
        """How many cases the group has."""
        return len(self.tables.get("cases", ()))

    def of(self, table: str) -> Sequence[Row]:
        """The rows of one table."""
        return self.tables.get(table, ())


def read(connection: sqlite3.Connection, group: int, key: GroupKey) -> GroupRows:
    """The rows of one group of a store."""
    tables: dict[str, list[Row]] = {}
    for table, columns in COLUMNS.items():
        rows = connection.execute(f"SELECT {columns} FROM {table} WHERE group_id = ? ORDER BY 1", (group,)).fetchall()
        if rows:
            tables[table] = rows
    return GroupRows(key, tables)


def write(connection: sqlite3.Connection, groups: Iterable[tuple[int, GroupRows]]) -> list[int]:
    """Insert the rows of groups and mark the groups as done; return the numbers of groups that were not done before.

    A group that is done does not change, nor do cases that a stopped run recorded.
    """
    by_number: dict[int, GroupRows] = {}
    for number, rows in groups:
        by_number.setdefault(number, rows)
    places = ", ".join("?" * len(by_number))
    is_open = f"SELECT id FROM groups WHERE NOT done AND id IN ({places})"
    added = [number for (number,) in connection.execute(is_open, list(by_number))]
    for table in COLUMNS:
        if values := [(number, *row) for number in added for row in by_number[number].of(table)]:
            _insert(connection, table, values)
    connection.executemany("UPDATE groups SET done = 1 WHERE id = ?", [(number,) for number in added])
    return added


def _insert(connection: sqlite3.Connection, table: str, values: Sequence[tuple[Any, ...]]) -> None:
    """Insert rows into a table; the number of its group is the first element of each."""
    insert, present = ("INSERT", _RECORDED) if table == "cases" else ("INSERT OR REPLACE", "")
    places = f"({', '.join('?' * (_WIDTHS[table] + 1))})"
    into = f"{insert} INTO {table} (group_id, {COLUMNS[table]}) VALUES"
    whole = len(values) - len(values) % _TOGETHER
    many = (list(chain.from_iterable(values[at : at + _TOGETHER])) for at in range(0, whole, _TOGETHER))
    connection.executemany(f"{into} {', '.join([places] * _TOGETHER)} {present}", many)
    connection.executemany(f"{into} {places} {present}", values[whole:])
