"""Reads a results store. Rows are sorted by name, independent of the order of execution."""

from __future__ import annotations

import json
import sqlite3
import sys
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path

from ...simulator.upstream.host_work import HostWork
from ..cases.covering.pairs import REFUSED_BY_CPU
from ..model.group import COMPILED_MODES, GroupKey
from ..model.launches import Launches
from ..model.verdicts import COMPARED_ERRORS, WITHOUT_EFFECT, AtFault, CaseVerdict, Grade, UlpSensitivity
from . import group_rows
from .column_values import (
    COMPILED_COLUMNS,
    OUTCOME_COLUMNS,
    ColumnReader,
    compiled_outcome_from,
    host_work_from,
    launches_from,
)
from .connection import StoreError, clear_errors
from .group_rows import GroupRows
from .records import (
    STRICT,
    CaseCount,
    Covered,
    ModuleRow,
    ModuleStatus,
    Run,
    StoredCase,
    StoredCompiledCase,
    StoredGroup,
)
from .schema import BY_NAME, GROUP_COLUMNS

# SQLite's integers end here; no row has the number.
LARGEST_NUMBER = 2**63 - 1
_DIGITS = 20  # more than that number has; Python refuses to convert thousands of them


class StoreQueries:
    """Queries on an open store."""

    def __init__(self, path: Path, connection: sqlite3.Connection) -> None:
        self.path = path
        self._connection = connection

    # ---- runs

    def runs(self) -> list[Run]:
        """All audits, the oldest first."""
        return self._runs()

    def _runs(self, where: str = "", *parameters: object) -> list[Run]:
        with clear_errors(self.path):
            rows = self._connection.execute(
                f"SELECT id, started, finished, settings, environment FROM runs {where} ORDER BY id", parameters
            ).fetchall()
        return [Run(i, s, f, json.loads(settings), json.loads(env)) for i, s, f, settings, env in rows]

    def run(self, number: int) -> Run:
        """The audit with this number. Raises StoreError if there is none."""
        if number <= LARGEST_NUMBER and (runs := self._runs("WHERE id = ?", number)):
            return runs[0]
        raise StoreError(f"{self.path}: no run {number}")

    def latest_run(self, *, compiled: bool = False) -> Run:
        """The newest audit of eager calls, or of calls under torch.compile. Raises StoreError if there is none."""
        runs = [run for run in self.runs() if run.compiled is compiled]
        if not runs:
            what, option = (" under torch.compile", " --compile") if compiled else ("", "")
            raise StoreError(f"{self.path}: holds no audit{what} yet (run `mpsmith audit{option} --store {self.path}`)")
        return runs[-1]

    def newest_run(self) -> Run | None:
        """The newest audit of either kind; None in an empty store."""
        return next(reversed(self.runs()), None)

    # ---- groups

    def groups(self, run: int) -> list[StoredGroup]:
        """The planned groups of a run, in the order of the plan."""
        return self._groups("run = ?", run)

    def open_groups(self, run: int, mode: str) -> list[StoredGroup]:
        """The groups of one mode that are not done, in the order of the plan."""
        return self._groups("run = ? AND mode = ? AND NOT done", run, mode)

    def _groups(self, where: str, *parameters: object) -> list[StoredGroup]:
        with clear_errors(self.path):
            rows = self._connection.execute(
                f"SELECT id, source, operator, variant, dtype, mode, done FROM groups WHERE {where} ORDER BY id",
                parameters,
            ).fetchall()
        return [StoredGroup(i, GroupKey(s, o, v, d, m), bool(done)) for i, s, o, v, d, m, done in rows]

    def is_done(self, group: int) -> bool:
        """Whether every case of the group is in the store."""
        with clear_errors(self.path):
            return bool(self._connection.execute("SELECT done FROM groups WHERE id = ?", (group,)).fetchone()[0])

    def rows_of(self, groups: Sequence[StoredGroup]) -> list[GroupRows]:
        """All rows of groups, as plain data for another store."""
        with clear_errors(self.path):
            return [group_rows.read(self._connection, group.id, group.key) for group in groups]

    # ---- cases

    def positions(self, group: int) -> set[int]:
        """The positions of the group's recorded cases."""
        with clear_errors(self.path):
            return {p for (p,) in self._connection.execute("SELECT position FROM cases WHERE group_id = ?", (group,))}

    def cases_of_group(self, group: int) -> list[StoredCase]:
        """The recorded cases of one group, by position."""
        with clear_errors(self.path):
            (run,) = self._connection.execute("SELECT run FROM groups WHERE id = ?", (group,)).fetchone()
        return list(self.cases(run, "g.id = ?", (group,)))

    def positions_with_fallback(self, run: int) -> dict[GroupKey, list[int]]:
        """For each group in fallback mode, the cases in which something fell back."""
        positions: dict[GroupKey, list[int]] = {}
        with clear_errors(self.path):
            cursor = self._connection.execute(
                f"SELECT c.position, {GROUP_COLUMNS} FROM cases c JOIN groups g ON g.id = c.group_id"
                " WHERE g.run = ? AND g.mode = 'fallback' AND c.fallbacks != '[]'"
                f" ORDER BY {BY_NAME}, c.position",
                (run,),
            )
            for position, *key in cursor:
                positions.setdefault(GroupKey(*key), []).append(position)
        return positions

    def case(self, number: int) -> tuple[Run, StoredCase]:
        """The recorded case with this number, and its run. Raises StoreError if there is none."""
        with clear_errors(self.path):
            row = self._connection.execute(
                "SELECT g.run FROM cases c JOIN groups g ON g.id = c.group_id WHERE c.id = ?", (number,)
            ).fetchone()
        if row is None:
            raise StoreError(f"{self.path}: no case {number} (the report and `mpsmith report --cases` list them)")
        return self.run(row[0]), next(self.cases(row[0], "c.id = ?", (number,)))

    def findings_after(self, run: int, number: int) -> tuple[int, list[tuple[str, str]]]:
        """The operator and verdict of each case with a larger number that did not pass; duplicates are removed.

        The number of the newest case comes first, from which the next call continues.
        """
        with clear_errors(self.path):
            (last,) = self._connection.execute("SELECT coalesce(max(id), 0) FROM cases").fetchone()
            rows = self._connection.execute(
                "SELECT DISTINCT g.operator, c.verdict FROM cases c JOIN groups g ON g.id = c.group_id"
                " WHERE c.id > ? AND c.id <= ? AND g.run = ? AND c.verdict IN"
                " ('wrong', 'crash', 'timeout', 'missing', 'fallback') ORDER BY g.operator, c.verdict",
                (number, last, run),
            ).fetchall()
        return last, rows

    def named_case(self, name: str) -> tuple[Run, StoredCase]:
        """The newest recorded case with this number or label, and its run.

        Raises StoreError if there is none.
        """
        if name.isdecimal():
            number = int(name[:_DIGITS])
            if number > LARGEST_NUMBER:
                raise StoreError(
                    f"{self.path}: no case {name[:_DIGITS]}... (the report and `mpsmith report --cases` list them)"
                )
            return self.case(number)
        mode = next((mode for mode in (STRICT, *COMPILED_MODES) if name.endswith(f":{mode}")), "fallback")
        source, _, rest = name.removesuffix(f":{mode}").partition(":")
        entry, dtype, position = ("::" + rest).rsplit(":", 2)
        with clear_errors(self.path):
            row = self._connection.execute(
                "SELECT c.id FROM cases c JOIN groups g ON g.id = c.group_id"
                " WHERE g.source = ? AND g.dtype = ? AND g.mode = ? AND CAST(c.position AS TEXT) = ?"
                " AND g.operator || CASE g.variant WHEN '' THEN '' ELSE '.' || g.variant END = ?"
                " ORDER BY g.run DESC",
                (source, dtype, mode, position, entry.removeprefix("::")),
            ).fetchone()
        if row is None:
            raise StoreError(
                f"{self.path}: no case {name!r} (a number, or source:operator:dtype:position as reports name it;"
                " `mpsmith report --cases` lists them)"
            )
        return self.case(row[0])

    def cases(self, run: int, where: str = "1", parameters: Sequence[object] = ()) -> Iterator[StoredCase]:
        """The cases of a run, sorted by name and position.

        `where` is an SQL condition over the columns of cases (c) and groups (g), for callers inside audit/.
        """
        of_device = self.run(run).grade
        cache = ColumnReader()
        with clear_errors(self.path):
            cursor = self._connection.execute(
                f"SELECT {OUTCOME_COLUMNS}, c.id, {GROUP_COLUMNS}, c.position, c.inputs, l.overload, l.call, l.message,"
                " c.grade, k.kernels, k.ulp_sensitivity, p.fits FROM cases c JOIN groups g ON g.id = c.group_id"
                " LEFT JOIN looked_inside l ON l.group_id = c.group_id AND l.position = c.position"
                " LEFT JOIN case_kernels k ON k.group_id = c.group_id AND k.position = c.position"
                " LEFT JOIN predictions p ON p.group_id = c.group_id AND p.position = c.position"
                f" WHERE g.run = ? AND ({where}) ORDER BY {BY_NAME}, c.position",
                (run, *parameters),
            )
            for row in cursor:
                number, *key = row[8:14]
                position, inputs, overload, inner_call, wrong, grade, launched, ulp_sensitivity, fits = row[14:]
                yield StoredCase(
                    number,
                    cache.group(key),
                    position,
                    cache.outcome(row[:8]),
                    inputs,
                    looked_inside=overload is not None,
                    at_fault=AtFault(overload, inner_call, wrong) if overload else None,
                    grade=Grade(grade) if grade else of_device,
                    kernels=cache.names(launched) if launched else (),
                    ulp_sensitivity=UlpSensitivity(ulp_sensitivity) if ulp_sensitivity else None,
                    predictions=json.loads(fits) if fits else {},
                )

    def messages(
        self, run: int, verdicts: Sequence[CaseVerdict], containing: str = ""
    ) -> Iterator[tuple[GroupKey, int, CaseVerdict, str]]:
        """Group, position, verdict and message of the cases with these verdicts whose message contains a text."""
        placeholders = ", ".join("?" * len(verdicts))
        cache = ColumnReader()
        with clear_errors(self.path):
            cursor = self._connection.execute(
                f"SELECT {GROUP_COLUMNS}, c.position, c.verdict, c.message FROM cases c"
                " JOIN groups g ON g.id = c.group_id"
                f" WHERE g.run = ? AND c.verdict IN ({placeholders}) AND instr(c.message, ?)"
                f" ORDER BY {BY_NAME}, c.position",
                (run, *(verdict.value for verdict in verdicts), containing),
            )
            for *key, position, verdict, message in cursor:
                yield cache.group(key), position, CaseVerdict(verdict), message

    def without_effect(self, run: int) -> Iterator[tuple[GroupKey, tuple[str, ...]]]:
        """The inputs on which no result of a group depends, for each group that has a note of such inputs."""
        for key, _, _, message in self.messages(run, (CaseVerdict.PASSED,), containing=WITHOUT_EFFECT):
            names = message.partition(WITHOUT_EFFECT)[2].partition("; ")[0]
            yield key, tuple(names.split(", "))

    def case_counts(self, run: int) -> Iterator[CaseCount]:
        """The cases of a run counted by group, verdict and grade (skipped ones also by reason)."""
        of_device = self.run(run).grade
        with clear_errors(self.path):
            cursor = self._connection.execute(
                f"SELECT {GROUP_COLUMNS}, c.verdict,"
                " CASE c.verdict WHEN 'skipped' THEN c.message ELSE '' END AS reason,"
                " count(*), sum(c.fallbacks != '[]'), sum(c.backward), sum(c.seconds), c.grade,"
                " sum(c.verdict = ? AND c.compared = ?)"
                " FROM cases c JOIN groups g ON g.id = c.group_id WHERE g.run = ?"
                f" GROUP BY g.id, c.verdict, reason, c.grade ORDER BY {BY_NAME}, c.verdict, reason, c.grade",
                (CaseVerdict.PASSED.value, COMPARED_ERRORS, run),
            )
            for *key, verdict, reason, cases, fallbacks, gradients, seconds, grade, refused in cursor:
                counts = (cases, fallbacks, gradients, seconds, Grade(grade) if grade else of_device, refused)
                yield CaseCount(GroupKey(*key), CaseVerdict(verdict), reason, *counts)

    def called_overloads(self, run: int) -> dict[GroupKey, dict[str, bool]]:
        """For each group, the overloads that its traced cases called (True: called by the user's own code)."""
        called: dict[GroupKey, dict[str, bool]] = {}
        cache = ColumnReader()
        with clear_errors(self.path):
            cursor = self._connection.execute(
                f"SELECT {GROUP_COLUMNS}, w.overload, w.outermost FROM called_overloads w"
                f" JOIN groups g ON g.id = w.group_id WHERE g.run = ? ORDER BY {BY_NAME}, w.overload",
                (run,),
            )
            for *key, overload, outermost in cursor:
                # The same few thousand names occur in every group: one string for each.
                called.setdefault(cache.group(key), {})[sys.intern(overload)] = bool(outermost)
        return called

    # ---- levels of the cases

    def repeating(self, run: int) -> int:
        """How many cases of a run were left out because they repeat the levels of others."""
        query = "SELECT coalesce(sum(v.repeating), 0) FROM covered v JOIN groups g ON g.id = v.group_id WHERE g.run = ?"
        with clear_errors(self.path):
            return int(self._connection.execute(query, (run,)).fetchone()[0])

    def covered(self, run: int) -> Iterator[Covered]:
        """The levels of the executed cases of each group of a run."""
        with clear_errors(self.path):
            cursor = self._connection.execute(
                f"SELECT {GROUP_COLUMNS}, v.repeating, v.levels FROM covered v JOIN groups g ON g.id = v.group_id"
                f" WHERE g.run = ? ORDER BY {BY_NAME}",
                (run,),
            )
            once: dict[tuple[str, str], tuple[str, str]] = {}  # the same few thousand levels occur in every group
            for *key, repeating, packed in cursor:
                levels = json.loads(zlib.decompress(packed))
                pairs = (map(tuple, of_case) for of_case in levels)
                of_cases = tuple(tuple(once.setdefault(level, level) for level in of_case) for of_case in pairs)
                refused = tuple(case_levels[:-1] for case_levels in of_cases if case_levels[-1:] == (REFUSED_BY_CPU,))
                accepted = (
                    tuple(case_levels for case_levels in of_cases if case_levels[-1:] != (REFUSED_BY_CPU,))
                    if refused
                    else of_cases
                )
                yield Covered(GroupKey(*key), repeating, accepted, refused)

    # ---- shipped kernels

    def shipped_kernels(self, run: int) -> tuple[str, ...]:
        """The names of all kernels that the run could have launched; none if it launched no shipped kernels."""
        with clear_errors(self.path):
            row = self._connection.execute("SELECT names FROM shipped_kernels WHERE run = ?", (run,)).fetchone()
        return tuple(zlib.decompress(row[0]).decode().split("\n")) if row else ()

    def launches(self, run: int) -> Iterator[tuple[GroupKey, str, Launches]]:
        """For each group and overload, the calls that used shipped kernels or kept the stand-in."""
        with clear_errors(self.path):
            cursor = self._connection.execute(
                f"SELECT {GROUP_COLUMNS}, l.overload, l.cases, l.calls, l.kernels, l.stood_in"
                f" FROM launches l JOIN groups g ON g.id = l.group_id WHERE g.run = ? ORDER BY {BY_NAME}, l.overload",
                (run,),
            )
            for *key, overload, cases, calls, kernels, stood_in in cursor:
                yield GroupKey(*key), sys.intern(overload), launches_from(cases, calls, kernels, stood_in)

    def host_work(self, run: int) -> dict[str, HostWork]:
        """Waits and CPU work of each overload's host code in a run."""
        totals: dict[str, HostWork] = {}
        with clear_errors(self.path):
            cursor = self._connection.execute(
                "SELECT w.overload, w.calls, w.graphs, w.waits, w.on_cpu FROM host_work w"
                " JOIN groups g ON g.id = w.group_id WHERE g.run = ? ORDER BY w.overload",
                (run,),
            )
            for overload, calls, graphs, waits, on_cpu in cursor:
                work = host_work_from(calls, graphs, waits, on_cpu)
                totals[overload] = totals.get(overload, HostWork()) + work
        return totals

    # ---- torch.compile and torch.mps

    def compiled_cases(self, run: int) -> Iterator[StoredCompiledCase]:
        """The cases of a run under torch.compile."""
        cache = ColumnReader()
        with clear_errors(self.path):
            cursor = self._connection.execute(
                f"SELECT {OUTCOME_COLUMNS}, {GROUP_COLUMNS}, c.position, c.inputs, {COMPILED_COLUMNS}"
                " FROM cases c JOIN groups g ON g.id = c.group_id"
                " LEFT JOIN compiled k ON k.group_id = c.group_id AND k.position = c.position"
                f" WHERE g.run = ? ORDER BY {BY_NAME}, c.position",
                (run,),
            )
            for row in cursor:
                compiled = compiled_outcome_from(cache.outcome(row[:8]), row[15:])
                yield StoredCompiledCase(cache.group(list(row[8:13])), row[13], row[14], compiled)

    def module_rows(self, run: int) -> list[ModuleRow]:
        """The results of the probes of torch.mps in a run, by name."""
        with clear_errors(self.path):
            rows = self._connection.execute(
                "SELECT name, status, detail FROM module_rows WHERE run = ? ORDER BY name", (run,)
            ).fetchall()
        return [ModuleRow(name, ModuleStatus(status), detail) for name, status, detail in rows]
