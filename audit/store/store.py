"""An open results store: the queries of `queries`, and the methods that write to it.

The parent plans a run and closes it; worker processes insert their own results, so that a killed parent loses nothing
that had finished. Several processes write through SQLite's write-ahead log; one audit at a time owns a store.
"""

from __future__ import annotations

import json
import sqlite3
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from ...simulator.upstream.host_work import HostWork
from ..cases.covering.pairs import REFUSED_BY_CPU, Levels
from ..compiled.verdicts import CompiledOutcome
from ..model.group import GroupKey
from ..model.launches import Launches, LaunchesByOverload
from ..model.verdicts import COMPARED_ERRORS, AtFault, CaseVerdict, Grade, Outcome, UlpSensitivity
from . import connection as connections
from . import group_rows
from .column_values import host_work_from, launches_from
from .connection import StoreError, check_version, clear_errors
from .group_rows import GroupRows
from .queries import StoreQueries
from .records import ModuleRow, Run


class Store(StoreQueries):
    """An open results store. Use `Store.create`, `Store.open` or `Store.open_or_create`."""

    def __init__(self, path: Path, connection: sqlite3.Connection) -> None:
        super().__init__(path, connection)
        self._in_transaction = False

    @classmethod
    def create(cls, path: Path) -> Store:
        """Make a new store at `path`, which must not exist. Raises StoreError."""
        if path.exists():
            raise StoreError(f"{path}: exists already")
        with clear_errors(path):
            return cls(path, connections.create(path))

    @classmethod
    def open(cls, path: Path) -> Store:
        """Open the store at `path` to read it, also on a read-only medium.

        Raises StoreError if it is absent, damaged, of another program or of another version.
        """
        check_version(path)
        with clear_errors(path):
            return cls(path, connections.open_to_read(path))

    @classmethod
    def open_to_add(cls, path: Path) -> Store:
        """Open the store at `path` to record more in it. Raises StoreError as `open` does."""
        check_version(path)
        with clear_errors(path):
            return cls(path, connections.open_to_write(path))

    @classmethod
    def open_or_create(cls, path: Path) -> Store:
        """Open the store at `path` to record more in it, or create it if there is none.

        A damaged store is refused, and not a byte of it changes.
        """
        if not path.exists():
            return cls.create(path)
        check_version(path)
        with clear_errors(path):
            connections.refuse_damage(path)
        return cls.open_to_add(path)

    def close(self) -> None:
        """Close the file; the store is not used afterwards."""
        self._connection.close()

    def __enter__(self) -> Store:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.close()

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Record everything in this context in one transaction, because a commit costs more than the rows."""
        with self._writing() as connection:
            # Immediate: a transaction that begins by reading cannot write once another process has written.
            connection.execute("BEGIN IMMEDIATE")
            self._in_transaction = True
            try:
                yield
            finally:
                self._in_transaction = False

    @contextmanager
    def _writing(self) -> Iterator[sqlite3.Connection]:
        with clear_errors(self.path):
            if self._in_transaction:
                yield self._connection
                return
            with self._connection as connection:
                yield connection

    # ---- runs and groups

    def begin_run(self, settings: dict[str, Any], environment: dict[str, Any]) -> Run:
        """Record that an audit starts."""
        with self._writing() as connection:
            cursor = connection.execute(
                "INSERT INTO runs (started, settings, environment) VALUES (?, ?, ?)",
                (now(), json.dumps(settings, sort_keys=True), json.dumps(environment, sort_keys=True)),
            )
            assert cursor.lastrowid is not None
            return self.run(cursor.lastrowid)

    def finish_run(self, run: int) -> None:
        """Record that all groups of the run are done."""
        with self._writing() as connection:
            connection.execute("UPDATE runs SET finished = ? WHERE id = ?", (now(), run))

    def plan(self, run: int, keys: Iterable[GroupKey]) -> None:
        """Record groups to be executed; groups that are already planned are not changed."""
        with self._writing() as connection:
            connection.executemany(
                "INSERT OR IGNORE INTO groups (run, source, operator, variant, dtype, mode) VALUES (?, ?, ?, ?, ?, ?)",
                ((run, k.source, k.operator, k.variant, k.dtype, k.mode) for k in keys),
            )

    def mark_done(self, group: int) -> None:
        """Record that every case of the group is in the store."""
        with self._writing() as connection:
            connection.execute("UPDATE groups SET done = 1 WHERE id = ?", (group,))

    def reopen(self, groups: Iterable[int]) -> dict[int, frozenset[int]]:
        """Delete the cases of these groups that are wrong or ran out of memory, so that they are judged again.

        Returns their positions by group; groups with such cases are no longer done.
        """
        query = (
            "SELECT position FROM cases WHERE group_id = ? AND position >= 0"
            " AND (verdict = 'wrong' OR (verdict = 'crash' AND message LIKE 'out of memory%'))"
        )
        reopened: dict[int, frozenset[int]] = {}
        with self._writing() as connection:
            for group in groups:
                positions = frozenset(position for (position,) in connection.execute(query, (group,)))
                if not positions:
                    continue
                reopened[group] = positions
                connection.execute("UPDATE groups SET done = 0 WHERE id = ?", (group,))
                for table in ("cases", "looked_inside", "case_kernels", "compiled"):
                    connection.executemany(
                        f"DELETE FROM {table} WHERE group_id = ? AND position = ?",
                        [(group, position) for position in sorted(positions)],
                    )
        return reopened

    def add_rows(self, groups: Sequence[tuple[int, GroupRows]]) -> list[int]:
        """Record whole groups in one transaction, each by its number; return those that were not done before."""
        with self._writing() as connection:
            return group_rows.write(connection, groups)

    # ---- cases

    def add_case(self, group: int, position: int, outcome: Outcome, inputs: str, grade: Grade | None = None) -> None:
        """Record one finished case; one that is already recorded is kept (a resumed run may repeat it).

        `grade`: the grade of its evidence; None for that of the run's device.
        """
        self.add_cases([(group, position, outcome, inputs)], grade)

    def add_cases(self, cases: Sequence[tuple[int, int, Outcome, str]], grade: Grade | None = None) -> None:
        """Record finished cases of one grade in one transaction: (group, position, outcome, inputs) each."""
        rows = [
            (
                group,
                position,
                o.verdict.value,
                o.stage,
                o.message,
                json.dumps(o.fallbacks),
                o.compared,
                o.max_error,
                int(o.backward),
                o.seconds,
                inputs,
                grade.value if grade else None,
            )
            for group, position, o, inputs in cases
        ]
        with self._writing() as connection:
            connection.executemany(
                "INSERT OR IGNORE INTO cases (group_id, position, verdict, stage, message, fallbacks, compared,"
                " max_error, backward, seconds, inputs, grade) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                rows,
            )

    def add_note(self, group: int, position: int, note: str, verdict: CaseVerdict | None = CaseVerdict.PASSED) -> None:
        """Append a note, if not empty, to the message of a recorded case with this verdict; None for any verdict."""
        with self._writing() as connection:
            connection.execute(
                "UPDATE cases SET message = message || CASE message WHEN '' THEN '' ELSE '; ' END || ?"
                " WHERE group_id = ? AND position = ? AND verdict = coalesce(?, verdict) AND instr(message, ?) = 0",
                (note, group, position, verdict.value if verdict else None, note),
            )

    def add_inner_fault(self, group: int, position: int, at_fault: AtFault | None) -> None:
        """Record which inner call of a recorded case was wrong; None if none was."""
        recorded = at_fault or AtFault("", "", "")
        with self._writing() as connection:
            connection.execute(
                "INSERT OR REPLACE INTO looked_inside (group_id, position, overload, call, message)"
                " VALUES (?, ?, ?, ?, ?)",
                (group, position, recorded.overload, recorded.call, recorded.message),
            )

    def add_called_overloads(self, group: int, overloads: dict[str, bool]) -> None:
        """Record which overloads the group's traced cases called; True: called directly by the user's code."""
        with self._writing() as connection:
            connection.executemany(
                "INSERT INTO called_overloads (group_id, overload, outermost) VALUES (?, ?, ?)"
                " ON CONFLICT DO UPDATE SET outermost = max(outermost, excluded.outermost)",
                [(group, overload, int(outermost)) for overload, outermost in overloads.items()],
            )

    def add_covered(self, group: int, repeating: int, levels: Mapping[int, Levels]) -> None:
        """Record the levels of the group's cases, and how many cases that repeat them were left out.

        Args:
            levels: the levels of every case to be executed, by position. Those of a skipped case are not recorded;
                those of a case that the CPU refuses have one more level.
        """
        with self._writing() as connection:
            query = "SELECT position, verdict, compared FROM cases WHERE group_id = ? AND verdict != ?"
            accepted = {
                position: compared != COMPARED_ERRORS and verdict != CaseVerdict.REFERENCE_FAILED.value
                for position, verdict, compared in connection.execute(query, (group, CaseVerdict.SKIPPED.value))
            }
            distinct = dict.fromkeys(
                of_case if accepted[position] else (*of_case, REFUSED_BY_CPU)
                for position, of_case in levels.items()
                if position in accepted
            )
            packed = zlib.compress(json.dumps(list(distinct), ensure_ascii=False).encode(), 1)
            connection.execute("INSERT OR REPLACE INTO covered VALUES (?, ?, ?)", (group, repeating, packed))

    # ---- shipped kernels

    def add_shipped_kernels(self, run: int, names: Sequence[str]) -> None:
        """Record the names of all kernels of the release whose kernels a run launches."""
        packed = zlib.compress("\n".join(names).encode(), 1)
        with self._writing() as connection:
            connection.execute("INSERT OR REPLACE INTO shipped_kernels VALUES (?, ?)", (run, packed))

    def add_launches(self, group: int, launches: Mapping[str, Launches]) -> None:
        """Add launches to those of the group."""
        with self._writing() as connection:
            sums: LaunchesByOverload = {name: Launches() for name in launches}
            for name, added in launches.items():
                where = "SELECT cases, calls, kernels, stood_in FROM launches WHERE group_id = ? AND overload = ?"
                if row := connection.execute(where, (group, name)).fetchone():
                    sums[name].add(launches_from(*row))
                sums[name].add(added)
            connection.executemany(
                "INSERT OR REPLACE INTO launches (group_id, overload, cases, calls, kernels, stood_in)"
                " VALUES (?, ?, ?, ?, ?, ?)",
                [
                    (group, name, e.cases, e.calls, json.dumps(e.kernels), json.dumps(e.stood_in))
                    for name, e in sums.items()
                ],
            )

    def add_host_work(self, group: int, work: Mapping[str, HostWork]) -> None:
        """Add what kernels of host code did besides encoding commands to that of the group."""
        with self._writing() as connection:
            for name in work:
                where = "SELECT calls, graphs, waits, on_cpu FROM host_work WHERE group_id = ? AND overload = ?"
                if row := connection.execute(where, (group, name)).fetchone():
                    work = {**work, name: work[name] + host_work_from(*row)}
            connection.executemany(
                "INSERT OR REPLACE INTO host_work (group_id, overload, calls, graphs, waits, on_cpu)"
                " VALUES (?, ?, ?, ?, ?, ?)",
                [(group, name, w.calls, w.graphs, w.waits, json.dumps(w.on_cpu)) for name, w in work.items()],
            )

    def add_case_kernels(self, group: int, position: int, kernels: Sequence[str]) -> None:
        """Record the shipped kernels, in order, that a case launched that did not pass."""
        with self._writing() as connection:
            connection.execute(
                "INSERT OR REPLACE INTO case_kernels (group_id, position, kernels) VALUES (?, ?, ?)",
                (group, position, json.dumps(list(kernels))),
            )

    def add_ulp_sensitivity(self, group: int, position: int, ulp_sensitivity: UlpSensitivity) -> None:
        """Record whether a wrong case with shipped kernels is ULP-sensitive."""
        with self._writing() as connection:
            connection.execute(
                "UPDATE case_kernels SET ulp_sensitivity = ? WHERE group_id = ? AND position = ?",
                (ulp_sensitivity.value, group, position),
            )

    def add_predictions(self, group: int, position: int, fits: Mapping[str, float], note: str = "") -> None:
        """Record the predictions that explain every differing element of a wrong case, and a note about the case."""
        self.add_note(group, position, note, CaseVerdict.WRONG)
        with self._writing() as connection:
            connection.execute(
                "INSERT OR REPLACE INTO predictions (group_id, position, fits) VALUES (?, ?, ?)",
                (group, position, json.dumps(fits)),
            )

    # ---- torch.compile and torch.mps

    def add_compiled(self, group: int, position: int, outcome: CompiledOutcome) -> None:
        """Record the outcome of a case under torch.compile.

        The source of a right result is not recorded; it can be generated again.
        """
        source = "" if outcome.verdict.is_right else outcome.source
        row = (
            outcome.verdict.value,
            json.dumps(outcome.aten),
            outcome.kernels,
            outcome.graphs,
            json.dumps(outcome.breaks),
            outcome.recompilations,
            outcome.reason,
            outcome.line,
            outcome.faulty_stage.value if outcome.faulty_stage else "",
            zlib.compress(source.encode()) if source else b"",
        )
        with self._writing() as connection:
            connection.execute(
                "INSERT OR REPLACE INTO compiled (group_id, position, verdict, aten, kernels, graphs, breaks,"
                " recompilations, reason, line, faulty_stage, source) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                (group, position, *row),
            )

    def add_module_row(self, run: int, row: ModuleRow) -> None:
        """Record the result of a probe; one that is already recorded is kept (a resumed run may repeat it)."""
        with self._writing() as connection:
            connection.execute(
                "INSERT OR IGNORE INTO module_rows (run, position, name, status, detail)"
                " SELECT ?, count(*), ?, ?, ? FROM module_rows WHERE run = ?",
                (run, row.name, row.status.value, row.detail, run),
            )


def now() -> str:
    """The current time in UTC, ISO 8601 to the second."""
    return datetime.now(timezone.utc).isoformat(timespec="seconds")
