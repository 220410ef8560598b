"""The results store: one SQLite file with a row per case and everything needed to run that case again.

The parent plans a run and closes it; worker processes insert their own results, so that a killed parent loses
nothing that had finished. Several processes write through SQLite's write-ahead log; one audit at a time owns a store.
"""

from __future__ import annotations

import json
import sqlite3
import sys
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import asdict, dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from ...errors import MpsmithError
from ..cases.covering.pairs import Levels
from ..compiled.verdicts import CompiledOutcome
from ..model.group import COMPILED_MODES, GroupKey
from ..model.launches import Launches, LaunchesByOverload
from ..model.selection import DTYPES
from ..model.verdicts import COMPARED_ERRORS, AtFault, CaseVerdict, Firmness, Grade, Outcome, grade_of_device
from . import compiled_rows, group_rows
from .compiled_rows import StoredCompiledCase
from .group_rows import GroupRows
from .module_rows import ModuleRow, ModuleStatus

APPLICATION_ID = 0x6D70736D  # "mpsm": tells our files from other SQLite databases
FORMAT = 1

SCHEMA = """
CREATE TABLE runs (
    id INTEGER PRIMARY KEY,
    started TEXT NOT NULL,
    finished TEXT,
    settings TEXT NOT NULL,
    environment TEXT NOT NULL
);
CREATE TABLE groups (
    id INTEGER PRIMARY KEY,
    run INTEGER NOT NULL REFERENCES runs(id),
    source TEXT NOT NULL,
    operator TEXT NOT NULL,
    variant TEXT NOT NULL,
    dtype TEXT NOT NULL,
    mode TEXT NOT NULL,
    done INTEGER NOT NULL DEFAULT 0,
    UNIQUE (run, source, operator, variant, dtype, mode)
);
CREATE TABLE cases (
    id INTEGER PRIMARY KEY,
    group_id INTEGER NOT NULL REFERENCES groups(id),
    position INTEGER NOT NULL,
    verdict TEXT NOT NULL,
    stage TEXT NOT NULL,
    message TEXT NOT NULL,
    fallbacks TEXT NOT NULL,
    compared TEXT NOT NULL,
    max_error REAL,
    backward INTEGER NOT NULL,
    seconds REAL NOT NULL,
    inputs TEXT NOT NULL,
    UNIQUE (group_id, position)
);
CREATE TABLE witnesses (
    group_id INTEGER NOT NULL REFERENCES groups(id),
    overload TEXT NOT NULL,
    outermost INTEGER NOT NULL,
    PRIMARY KEY (group_id, overload)
) WITHOUT ROWID;
"""


# Added after format 1 was in use; an older store gets the tables when it is opened to add to it.
LATER_SCHEMA = """
CREATE TABLE IF NOT EXISTS module_rows (
    run INTEGER NOT NULL REFERENCES runs(id),
    position INTEGER NOT NULL,
    name TEXT NOT NULL,
    status TEXT NOT NULL,
    detail TEXT NOT NULL,
    PRIMARY KEY (run, name)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS covered (
    group_id INTEGER PRIMARY KEY REFERENCES groups(id),
    repeating INTEGER NOT NULL,
    levels BLOB NOT NULL
);
CREATE TABLE IF NOT EXISTS looked_inside (
    group_id INTEGER NOT NULL REFERENCES groups(id),
    position INTEGER NOT NULL,
    overload TEXT NOT NULL,
    call TEXT NOT NULL,
    message TEXT NOT NULL,
    PRIMARY KEY (group_id, position)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS launches (
    group_id INTEGER NOT NULL REFERENCES groups(id),
    overload TEXT NOT NULL,
    cases INTEGER NOT NULL,
    calls INTEGER NOT NULL,
    kernels TEXT NOT NULL,
    stood_in TEXT NOT NULL,
    PRIMARY KEY (group_id, overload)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS case_kernels (
    group_id INTEGER NOT NULL REFERENCES groups(id),
    position INTEGER NOT NULL,
    kernels TEXT NOT NULL,
    PRIMARY KEY (group_id, position)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS shipped_kernels (
    run INTEGER PRIMARY KEY REFERENCES runs(id),
    names BLOB NOT NULL
);
"""

# Columns that came later still: a store without one reads as if it were empty. Of a case, the grade of its evidence
# where it is not that of the run's device; of the shipped kernels of a wrong case, whether it hangs on last bits.
LATER_COLUMNS = {"cases": {"grade": "TEXT"}, "case_kernels": {"standing": "TEXT"}}


# Groups are planned in an order that spreads the work, and numbered as they are planned: what is read follows their
# names instead, so that a report is a function of what was found alone. The dtypes stand in the order of DTYPES.
_DTYPE_ORDER = " ".join(f"WHEN '{dtype}' THEN {position}" for position, dtype in enumerate(DTYPES))
BY_NAME = f"g.source, g.operator, g.variant, CASE g.dtype {_DTYPE_ORDER} ELSE {len(DTYPES)} END, g.dtype, g.mode"

STRICT = "strict"


class StoreError(MpsmithError):
    """The store cannot be read or written: damaged, foreign, in use, or the disk refuses."""


@dataclass(frozen=True)
class Run:
    """One audit: when, with which settings, on which machine."""

    id: int
    started: str
    finished: str | None
    settings: dict[str, Any]
    environment: dict[str, Any]

    @property
    def simulated(self) -> bool:
        """Whether the mps device was the simulated one: then nothing here is evidence about a Mac."""
        return bool(self.environment["simulated"])

    @property
    def compiled(self) -> bool:
        """Whether every call ran under torch.compile: a lane of its own, that says nothing of calls as they are."""
        return bool(self.settings.get("compiled"))

    @property
    def grade(self) -> Grade:
        """The grade of the evidence that the device itself gives."""
        return grade_of_device(simulated=bool(self.environment.get("simulated", False)))


@dataclass(frozen=True)
class StoredGroup:
    """A planned group: its key, and whether all its cases have been recorded."""

    id: int
    key: GroupKey
    done: bool


@dataclass(frozen=True)
class StoredCase:
    """A recorded case with the group it belongs to.

    `grade`: what ran, and so what the outcome is evidence of; `kernels`: the shipped ones, if it did not pass;
    `standing`: whether what they gave wrong hangs on the last bits of their mathematics, where that was tried.
    `looked_inside`: the calls inside it were audited one by one, because it did not pass; `at_fault` is then the first
    that was wrong, None where none was.
    """

    id: int
    group: GroupKey
    position: int
    outcome: Outcome
    inputs: str
    looked_inside: bool = False
    at_fault: AtFault | None = None
    grade: Grade = Grade.DISPATCH_ONLY
    kernels: tuple[str, ...] = ()
    standing: Firmness | None = None

    @property
    def label(self) -> str:
        """What it is called in every run with these settings: source:operator[.variant]:dtype:position[:strict]."""
        return self.group.label_of(self.position)


@dataclass(frozen=True)
class CaseCount:
    """How many cases of a group had one verdict and grade of evidence; skipped ones are counted by `reason`.

    `gradients` is the number of cases whose gradients were compared, `with_fallbacks` of those in which something
    fell back, `seconds` their wall time together.
    """

    group: GroupKey
    verdict: CaseVerdict
    reason: str
    cases: int
    with_fallbacks: int
    gradients: int
    seconds: float
    grade: Grade = Grade.DISPATCH_ONLY


@dataclass(frozen=True)
class Covered:
    """What the executed cases of a group are at, each kind of case once, and how many that repeat them are left out."""

    group: GroupKey
    repeating: int
    levels: tuple[Levels, ...]


def now() -> str:
    """The current time in UTC, ISO 8601 to the second."""
    return datetime.now(timezone.utc).isoformat(timespec="seconds")


@contextmanager
def clear_errors(path: Path | str) -> Iterator[None]:
    """Turn SQLite's errors into one line that names the file, or files, and what to do next."""
    try:
        yield
    except sqlite3.DatabaseError as error:
        text = str(error)
        if "full" in text:
            advice = "free some space and continue with --resume"
        elif "readonly" in text or "unable to open" in text:
            advice = "choose a place that can be read and written with --store"
        elif "locked" in text:
            advice = "another process holds it: wait for it to end"
        else:
            advice = "the file is damaged or not a store of mpsmith: choose another with --store"
        raise StoreError(f"{path}: {text} ({advice})") from error


class Store:
    """An open results store. Use `Store.create`, `Store.open` or `Store.open_or_create`."""

    def __init__(self, path: Path, connection: sqlite3.Connection) -> None:
        self.path = path
        self._connection = connection
        self._gathering = False

    @classmethod
    def create(cls, path: Path) -> Store:
        """Make a new store at `path`, which must not exist. Raises StoreError."""
        if path.exists():
            raise StoreError(f"{path}: exists already")
        with clear_errors(path):
            try:
                path.parent.mkdir(parents=True, exist_ok=True)
            except OSError as error:
                raise StoreError(f"{path.parent}: {error.strerror} (choose another place with --store)") from error
            connection = _connect(path)
            # Before the write-ahead log, so that the first bytes of the file itself say what it is: see _check_format.
            connection.executescript(
                f"PRAGMA application_id={APPLICATION_ID}; PRAGMA user_version={FORMAT};"
                f" BEGIN; {SCHEMA} {LATER_SCHEMA} {compiled_rows.SCHEMA} COMMIT;"
            )
            _add_later_columns(connection)
            _write_ahead(connection)
        return cls(path, connection)

    @classmethod
    def open(cls, path: Path) -> Store:
        """Open the store at `path` to read it, from a medium that cannot be written too.

        Raises StoreError when it is absent, damaged, foreign or of another format.
        """
        _check_format(path)
        with clear_errors(path):
            return cls(path, _connect_to_read(path))

    @classmethod
    def open_to_add(cls, path: Path) -> Store:
        """Open the store at `path` to record more in it. Raises StoreError as `open` does."""
        _check_format(path)
        with clear_errors(path):
            connection = _connect(path)
            _write_ahead(connection)
            connection.executescript(LATER_SCHEMA + compiled_rows.SCHEMA)
            _add_later_columns(connection)
        return cls(path, connection)

    @classmethod
    def open_or_create(cls, path: Path) -> Store:
        """Open the store at `path` to record more in it, or make it when there is none.

        One that is damaged anywhere is refused, and not a byte of it changes.
        """
        if not path.exists():
            return cls.create(path)
        _check_format(path)
        with clear_errors(path), closing(_connect_to_read(path)) as connection:
            (state,) = connection.execute("PRAGMA quick_check(1)").fetchone()
            if state != "ok":
                raise sqlite3.DatabaseError(str(state).splitlines()[0])
        return cls.open_to_add(path)

    def close(self) -> None:
        """Close the file; the store is not used afterwards."""
        self._connection.close()

    def __enter__(self) -> Store:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.close()

    @contextmanager
    def together(self) -> Iterator[None]:
        """Make one transaction of all that is recorded in this context: a commit costs more than the rows."""
        with self._writing() as connection:
            # At once, for what begins by reading cannot write any more once another process has written.
            connection.execute("BEGIN IMMEDIATE")
            self._gathering = True
            try:
                yield
            finally:
                self._gathering = False

    @contextmanager
    def _writing(self) -> Iterator[sqlite3.Connection]:
        with clear_errors(self.path):
            if self._gathering:
                yield self._connection
                return
            with self._connection as connection:
                yield connection

    # ---- runs

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

    def runs(self) -> list[Run]:
        """All audits, the oldest first."""
        return self._runs()

    def _runs(self, where: str = "", parameters: Sequence[object] = ()) -> list[Run]:
        with clear_errors(self.path):
            rows = self._connection.execute(
                f"SELECT id, started, finished, settings, environment FROM runs {where} ORDER BY id", parameters
            ).fetchall()
        return [Run(i, s, f, json.loads(settings), json.loads(env)) for i, s, f, settings, env in rows]

    def run(self, number: int) -> Run:
        """The audit with this number. Raises StoreError when there is none."""
        if found := self._runs("WHERE id = ?", (number,)):
            return found[0]
        raise StoreError(f"{self.path}: no run {number}")

    def latest_run(self, *, compiled: bool = False) -> Run:
        """The newest audit, of calls as they are or of those under torch.compile. Raises StoreError without one."""
        runs = [run for run in self.runs() if run.compiled is compiled]
        if not runs:
            what, option = (" under torch.compile", " --compile") if compiled else ("", "")
            raise StoreError(f"{self.path}: holds no audit{what} yet (run `mpsmith audit{option} --store {self.path}`)")
        return runs[-1]

    def newest_run(self) -> Run | None:
        """The audit that was begun last, of either lane; None in an empty store."""
        return next(reversed(self.runs()), None)

    # ---- groups

    def plan(self, run: int, keys: Iterable[GroupKey]) -> None:
        """Record groups to be executed; those already planned stay as they are."""
        with self._writing() as connection:
            connection.executemany(
                "INSERT OR IGNORE INTO groups (run, source, operator, variant, dtype, mode) VALUES (?, ?, ?, ?, ?, ?)",
                ((run, k.source, k.operator, k.variant, k.dtype, k.mode) for k in keys),
            )

    def groups(self, run: int) -> list[StoredGroup]:
        """The planned groups of a run in the order of planning."""
        return self._groups("run = ?", (run,))

    def open_groups(self, run: int, mode: str) -> list[StoredGroup]:
        """The groups of one mode that are not done, in the order of planning."""
        return self._groups("run = ? AND mode = ? AND NOT done", (run, mode))

    def _groups(self, where: str, parameters: Sequence[object]) -> list[StoredGroup]:
        with clear_errors(self.path):
            rows = self._connection.execute(
                f"SELECT id, source, operator, variant, dtype, mode, done FROM groups WHERE {where} ORDER BY id",
                parameters,
            ).fetchall()
        return [StoredGroup(i, GroupKey(s, o, v, d, m), bool(done)) for i, s, o, v, d, m, done in rows]

    def mark_done(self, group: int) -> None:
        """Record that every case of the group is in the store."""
        with self._writing() as connection:
            connection.execute("UPDATE groups SET done = 1 WHERE id = ?", (group,))

    def is_done(self, group: int) -> bool:
        """Whether every case of the group is in the store."""
        with clear_errors(self.path):
            return bool(self._connection.execute("SELECT done FROM groups WHERE id = ?", (group,)).fetchone()[0])

    # ---- whole groups, from one store into another

    def rows_of(self, groups: Sequence[StoredGroup]) -> list[GroupRows]:
        """All that is recorded of groups, as plain data."""
        with clear_errors(self.path):
            return [group_rows.read(self._connection, group.id, group.key) for group in groups]

    def add_rows(self, groups: Sequence[tuple[int, GroupRows]]) -> list[int]:
        """Record whole groups in one transaction, each by its number; returns those that were not done before."""
        with self._writing() as connection:
            return group_rows.write(connection, groups)

    # ---- cases

    def add_case(self, group: int, position: int, outcome: Outcome, inputs: str, grade: Grade | None = None) -> None:
        """Record one finished case; one that is already there stays (a resumed run may repeat it).

        `grade`: of its evidence; None for that of the run's device.
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

    def add_look_inside(self, group: int, position: int, at_fault: AtFault | None) -> None:
        """Record which of the calls inside a recorded case was wrong, None where none was."""
        found = at_fault or AtFault("", "", "")
        with self._writing() as connection:
            connection.execute(
                "INSERT OR REPLACE INTO looked_inside (group_id, position, overload, call, message)"
                " VALUES (?, ?, ?, ?, ?)",
                (group, position, found.overload, found.call, found.message),
            )

    def positions(self, group: int) -> set[int]:
        """The positions of the group's cases that are recorded."""
        with clear_errors(self.path):
            return {p for (p,) in self._connection.execute("SELECT position FROM cases WHERE group_id = ?", (group,))}

    def positions_with_fallback(self, run: int) -> dict[GroupKey, list[int]]:
        """For each group in fallback mode, the cases in which something fell back."""
        positions: dict[GroupKey, list[int]] = {}
        with clear_errors(self.path):
            cursor = self._connection.execute(
                "SELECT c.position, g.source, g.operator, g.variant, g.dtype, g.mode"
                " FROM cases c JOIN groups g ON g.id = c.group_id"
                " WHERE g.run = ? AND g.mode = 'fallback' AND c.fallbacks != '[]'"
                f" ORDER BY {BY_NAME}, c.position",
                (run,),
            )
            for position, *key in cursor:
                positions.setdefault(GroupKey(*key), []).append(position)
        return positions

    def case(self, number: int) -> tuple[Run, StoredCase]:
        """The recorded case with this number, and its run. Raises StoreError when there is none."""
        with clear_errors(self.path):
            row = self._connection.execute(
                "SELECT g.run FROM cases c JOIN groups g ON g.id = c.group_id WHERE c.id = ?", (number,)
            ).fetchone()
        if row is None:
            raise StoreError(f"{self.path}: no case {number} (the report and `mpsmith report --cases` list them)")
        return self.run(row[0]), next(self.cases(row[0], "c.id = ?", (number,)))

    def named_case(self, name: str) -> tuple[Run, StoredCase]:
        """The recorded case with this number or this label, and its run: the newest that has it.

        Raises StoreError when there is none.
        """
        if name.isdecimal():
            return self.case(int(name))
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
        """The cases of a run in the order of their names and positions, whatever order they were executed in.

        `where` is an SQL condition over the columns of cases (c) and groups (g), for callers inside this package.
        """
        with clear_errors(self.path):
            looks, look, kernels = "", "NULL, NULL, NULL", "NULL, NULL"
            if self._has_table("looked_inside"):
                looks = "LEFT JOIN looked_inside l ON l.group_id = c.group_id AND l.position = c.position"
                look = "l.overload, l.call, l.message"
            if self._has_table("case_kernels"):
                looks += " LEFT JOIN case_kernels k ON k.group_id = c.group_id AND k.position = c.position"
                has_standing = "standing" in _columns(self._connection, "case_kernels")
                kernels = "k.kernels, k.standing" if has_standing else "k.kernels, NULL"
            of_device = self.run(run).grade
            cursor = self._connection.execute(
                "SELECT c.id, g.source, g.operator, g.variant, g.dtype, g.mode, c.position, c.verdict, c.stage,"
                f" c.message, c.fallbacks, c.compared, c.max_error, c.backward, c.seconds, c.inputs,"
                f" {look}, {self._grade()}, {kernels}"
                f" FROM cases c JOIN groups g ON g.id = c.group_id {looks} WHERE g.run = ? AND ({where})"
                f" ORDER BY {BY_NAME}, c.position",
                (run, *parameters),
            )
            named = _Names()
            for row in cursor:
                number, *key, position, verdict, stage, message, fallbacks, compared, max_error, backward = row[:14]
                seconds, inputs, overload, inner_call, wrong, grade, launched, standing = row[14:]
                yield StoredCase(
                    number,
                    named.group(key),
                    position,
                    Outcome(
                        _VERDICTS[verdict],
                        stage,
                        message,
                        named.in_list(fallbacks),
                        compared,
                        max_error,
                        bool(backward),
                        seconds,
                    ),
                    inputs,
                    looked_inside=overload is not None,
                    at_fault=AtFault(overload, inner_call, wrong) if overload else None,
                    grade=Grade(grade) if grade else of_device,
                    kernels=named.in_list(launched) if launched else (),
                    standing=Firmness(standing) if standing else None,
                )

    def messages(self, run: int, verdicts: Sequence[CaseVerdict]) -> Iterator[tuple[GroupKey, int, CaseVerdict, str]]:
        """Of the cases with these verdicts, in the order of names: group, position, verdict and message alone."""
        places = ", ".join("?" * len(verdicts))
        named = _Names()
        with clear_errors(self.path):
            cursor = self._connection.execute(
                "SELECT g.source, g.operator, g.variant, g.dtype, g.mode, c.position, c.verdict, c.message"
                " FROM cases c JOIN groups g ON g.id = c.group_id"
                f" WHERE g.run = ? AND c.verdict IN ({places}) ORDER BY {BY_NAME}, c.position",
                (run, *(verdict.value for verdict in verdicts)),
            )
            for *key, position, verdict, message in cursor:
                yield named.group(key), position, _VERDICTS[verdict], message

    def case_counts(self, run: int) -> Iterator[CaseCount]:
        """The cases of a run counted by group, verdict and grade (and by reason, where they were skipped)."""
        with clear_errors(self.path):
            of_device = self.run(run).grade
            cursor = self._connection.execute(
                "SELECT g.source, g.operator, g.variant, g.dtype, g.mode, c.verdict,"
                " CASE c.verdict WHEN 'skipped' THEN c.message ELSE '' END AS reason,"
                f" count(*), sum(c.fallbacks != '[]'), sum(c.backward), sum(c.seconds), {self._grade()} AS grade"
                " FROM cases c JOIN groups g ON g.id = c.group_id WHERE g.run = ?"
                f" GROUP BY g.id, c.verdict, reason, grade ORDER BY {BY_NAME}, c.verdict, reason, grade",
                (run,),
            )
            for *key, verdict, reason, cases, fallbacks, gradients, seconds, grade in cursor:
                counts = (cases, fallbacks, gradients, seconds, Grade(grade) if grade else of_device)
                yield CaseCount(GroupKey(*key), CaseVerdict(verdict), reason, *counts)

    def fallback_counts(self, run: int) -> Counter[str]:
        """In how many cases of a run each operator ran on the CPU or was missing."""
        counts: Counter[str] = Counter()
        with clear_errors(self.path):
            cursor = self._connection.execute(
                "SELECT c.fallbacks, count(*) FROM cases c JOIN groups g ON g.id = c.group_id"
                " WHERE g.run = ? AND c.fallbacks != '[]' GROUP BY c.fallbacks",
                (run,),
            )
            for names, cases in cursor:
                for name in json.loads(names):
                    counts[name] += cases
        return counts

    # ---- what the cases are at

    def add_covered(self, group: int, repeating: int, levels: Mapping[int, Levels]) -> None:
        """Record what the group's cases are at, and how many cases that repeat them were left out.

        Args:
            levels: of every case that was to be executed, by position; kept are those of the cases that tell: a case
                that was not executed, or that the CPU refuses, says nothing of what it is at.
        """
        with self._writing() as connection:
            telling = {
                position
                for position, verdict in connection.execute(
                    "SELECT position, verdict FROM cases WHERE group_id = ? AND compared != ?", (group, COMPARED_ERRORS)
                )
                if CaseVerdict(verdict).executed
            }
            distinct = dict.fromkeys(of_case for position, of_case in levels.items() if position in telling)
            packed = zlib.compress(json.dumps(list(distinct), ensure_ascii=False).encode(), 1)
            connection.execute("INSERT OR REPLACE INTO covered VALUES (?, ?, ?)", (group, repeating, packed))

    def repeating(self, run: int) -> int:
        """How many cases of a run were left out because they repeat others."""
        with clear_errors(self.path):
            if not self._holds_covered():
                return 0
            query = (
                "SELECT coalesce(sum(v.repeating), 0) FROM covered v JOIN groups g ON g.id = v.group_id WHERE g.run = ?"
            )
            (repeating,) = self._connection.execute(query, (run,)).fetchone()
        return int(repeating)

    def _holds_covered(self) -> bool:
        """Whether the store is from after there were any."""
        found = self._connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'covered'").fetchone()
        return found is not None

    def covered(self, run: int) -> Iterator[Covered]:
        """What the executed cases of each group of a run are at, in the order of the groups' names."""
        with clear_errors(self.path):
            if not self._holds_covered():
                return
            cursor = self._connection.execute(
                "SELECT g.source, g.operator, g.variant, g.dtype, g.mode, v.repeating, v.levels"
                f" FROM covered v JOIN groups g ON g.id = v.group_id WHERE g.run = ? ORDER BY {BY_NAME}",
                (run,),
            )
            for source, operator, variant, dtype, mode, repeating, packed in cursor:
                levels = json.loads(zlib.decompress(packed))
                of_cases = tuple(tuple((factor, level) for factor, level in of_case) for of_case in levels)
                yield Covered(GroupKey(source, operator, variant, dtype, mode), repeating, of_cases)

    # ---- shipped kernels

    def add_shipped_kernels(self, run: int, names: Sequence[str]) -> None:
        """Record the names of all kernels of the release whose kernels a run launches."""
        packed = zlib.compress("\n".join(names).encode(), 1)
        with self._writing() as connection:
            connection.execute("INSERT OR REPLACE INTO shipped_kernels VALUES (?, ?)", (run, packed))

    def shipped_kernels(self, run: int) -> tuple[str, ...]:
        """The names of all kernels that the run could have launched; none where it launched no shipped kernels."""
        with clear_errors(self.path):
            if not self._has_table("shipped_kernels"):
                return ()
            row = self._connection.execute("SELECT names FROM shipped_kernels WHERE run = ?", (run,)).fetchone()
        return tuple(zlib.decompress(row[0]).decode().split("\n")) if row else ()

    def add_launches(self, group: int, launches: Mapping[str, Launches]) -> None:
        """Record what became of the calls of a group's cases, beside what is recorded of others of the group."""
        with self._writing() as connection:
            together: LaunchesByOverload = {name: Launches() for name in launches}
            for name, each in launches.items():
                where = "SELECT cases, calls, kernels, stood_in FROM launches WHERE group_id = ? AND overload = ?"
                if row := connection.execute(where, (group, name)).fetchone():
                    together[name].add(_launches(*row))
                together[name].add(each)
            connection.executemany(
                "INSERT OR REPLACE INTO launches (group_id, overload, cases, calls, kernels, stood_in)"
                " VALUES (?, ?, ?, ?, ?, ?)",
                [
                    (group, name, e.cases, e.calls, json.dumps(e.kernels), json.dumps(e.stood_in))
                    for name, e in together.items()
                ],
            )

    def launches(self, run: int) -> Iterator[tuple[GroupKey, str, Launches]]:
        """What became of the calls of each overload, group by group in the order of names."""
        with clear_errors(self.path):
            if not self._has_table("launches"):
                return
            cursor = self._connection.execute(
                "SELECT g.source, g.operator, g.variant, g.dtype, g.mode, l.overload, l.cases, l.calls, l.kernels,"
                " l.stood_in FROM launches l JOIN groups g ON g.id = l.group_id WHERE g.run = ?"
                f" ORDER BY {BY_NAME}, l.overload",
                (run,),
            )
            for *key, overload, cases, calls, kernels, stood_in in cursor:
                yield GroupKey(*key), sys.intern(overload), _launches(cases, calls, kernels, stood_in)

    def add_case_kernels(self, group: int, position: int, kernels: Sequence[str]) -> None:
        """Record the shipped kernels that a case launched, in order: of one that did not pass."""
        with self._writing() as connection:
            row = (group, position, json.dumps(list(kernels)))
            insert = "INSERT OR REPLACE INTO case_kernels (group_id, position, kernels) VALUES (?, ?, ?)"
            connection.execute(insert, row)

    def add_standing(self, group: int, position: int, standing: Firmness) -> None:
        """Record of a wrong case with shipped kernels whether it hangs on the last bits of their mathematics."""
        with self._writing() as connection:
            connection.execute(
                "UPDATE case_kernels SET standing = ? WHERE group_id = ? AND position = ?",
                (standing.value, group, position),
            )

    # ---- torch.compile

    def add_compiled(self, group: int, position: int, found: CompiledOutcome) -> None:
        """Record what became of a case under torch.compile, beside its outcome."""
        row = (group, position, *compiled_rows.fields_of(found))
        places = ", ".join("?" * len(row))
        with self._writing() as connection:
            connection.execute(
                f"INSERT OR REPLACE INTO compiled (group_id, position, {compiled_rows.COLUMNS}) VALUES ({places})", row
            )

    def compiled_cases(self, run: int) -> Iterator[StoredCompiledCase]:
        """The cases of a run under torch.compile, in the order of their names and positions."""
        columns = ", ".join(f"k.{name}" for name in compiled_rows.COLUMNS.split(", "))
        with clear_errors(self.path):
            cursor = self._connection.execute(
                "SELECT g.source, g.operator, g.variant, g.dtype, g.mode, c.position, c.inputs, c.verdict, c.stage,"
                f" c.message, c.fallbacks, c.compared, c.max_error, c.backward, c.seconds, {columns}"
                " FROM cases c JOIN groups g ON g.id = c.group_id"
                " LEFT JOIN compiled k ON k.group_id = c.group_id AND k.position = c.position"
                f" WHERE g.run = ? ORDER BY {BY_NAME}, c.position",
                (run,),
            )
            for row in cursor:
                key, position, inputs = GroupKey(*row[:5]), row[5], row[6]
                verdict, stage, message, fallbacks, compared, max_error, backward, seconds = row[7:15]
                outcome = Outcome(
                    CaseVerdict(verdict),
                    stage,
                    message,
                    tuple(json.loads(fallbacks)),
                    compared,
                    max_error,
                    bool(backward),
                    seconds,
                )
                yield StoredCompiledCase(key, position, inputs, compiled_rows.found_in(outcome, row[15:]))

    # ---- torch.mps itself

    def add_module_row(self, run: int, row: ModuleRow) -> None:
        """Record what a probe of one name showed; one that is already there stays (a resumed run may repeat it)."""
        with self._writing() as connection:
            connection.execute(
                "INSERT OR IGNORE INTO module_rows (run, position, name, status, detail)"
                " SELECT ?, count(*), ?, ?, ? FROM module_rows WHERE run = ?",
                (run, row.name, row.status.value, row.detail, run),
            )

    def module_rows(self, run: int) -> list[ModuleRow]:
        """What the probes of a run showed, in the order of names."""
        with clear_errors(self.path):
            if not self._has_table("module_rows"):
                return []  # a store from before there were any
            rows = self._connection.execute(
                "SELECT name, status, detail FROM module_rows WHERE run = ? ORDER BY name", (run,)
            ).fetchall()
        return [ModuleRow(name, ModuleStatus(status), detail) for name, status, detail in rows]

    def _grade(self) -> str:
        """The column of the cases' grades; nothing in a store from before there were any."""
        return "c.grade" if "grade" in _columns(self._connection, "cases") else "NULL"

    def _has_table(self, name: str) -> bool:
        return self._connection.execute("SELECT 1 FROM sqlite_master WHERE name = ?", (name,)).fetchone() is not None

    # ---- witnesses

    def add_witnesses(self, group: int, overloads: dict[str, bool]) -> None:
        """Record which overloads the group's traced cases called; the value says: called by the user's own code."""
        with self._writing() as connection:
            connection.executemany(
                "INSERT INTO witnesses (group_id, overload, outermost) VALUES (?, ?, ?)"
                " ON CONFLICT DO UPDATE SET outermost = max(outermost, excluded.outermost)",
                [(group, overload, int(outermost)) for overload, outermost in overloads.items()],
            )

    def witnesses(self, run: int) -> dict[GroupKey, dict[str, bool]]:
        """For each group, the overloads that its traced cases called (True: called by the user's own code)."""
        keys = {group.id: group.key for group in self.groups(run)}
        called: dict[GroupKey, dict[str, bool]] = {}
        with clear_errors(self.path):
            cursor = self._connection.execute(
                "SELECT w.group_id, w.overload, w.outermost FROM witnesses w JOIN groups g ON g.id = w.group_id"
                f" WHERE g.run = ? ORDER BY {BY_NAME}, w.overload",
                (run,),
            )
            for group, overload, outermost in cursor:
                # The same few thousand names come up in every group: one string for each.
                called.setdefault(keys[group], {})[sys.intern(overload)] = bool(outermost)
        return called


_VERDICTS = {verdict.value: verdict for verdict in CaseVerdict}


class _Names:
    """The groups and the lists of names in rows, each made once: thousands of cases have the same."""

    def __init__(self) -> None:
        self._key: list[str] = []
        self._group = GroupKey("", "", "", "", "")
        self._lists: dict[str, tuple[str, ...]] = {"[]": ()}

    def group(self, key: list[str]) -> GroupKey:
        """The group with this key; rows of one stand together."""
        if key != self._key:
            self._key, self._group = key, GroupKey(*key)
        return self._group

    def in_list(self, text: str) -> tuple[str, ...]:
        """The names in a list in JSON."""
        if text not in self._lists:
            self._lists[text] = tuple(json.loads(text))
        return self._lists[text]


def _check_format(path: Path) -> None:
    """Refuse what is no store of this format by the first bytes of the file, before SQLite touches it."""
    try:
        with path.open("rb") as file:
            header = file.read(72)
    except FileNotFoundError:
        raise StoreError(f"{path}: no such store (make one with `mpsmith audit --store {path}`)") from None
    except OSError as error:
        raise StoreError(f"{path}: {error.strerror} (choose another with --store)") from error
    # https://www.sqlite.org/fileformat.html: the user version stands at 60, the application id at 68.
    if not header.startswith(b"SQLite format 3\x00") or int.from_bytes(header[68:72], "big") != APPLICATION_ID:
        raise StoreError(f"{path}: damaged or not a store of mpsmith (choose another file with --store)")
    version = int.from_bytes(header[60:64], "big")
    if version != FORMAT:
        raise StoreError(f"{path}: store format {version}, this mpsmith reads {FORMAT} (audit into a new file)")


def address_to_read(path: Path) -> str:
    """The address under which SQLite changes no byte of the file; beside a writer it sees what is complete.

    SQLite reads a write-ahead store through a file of shared memory beside it. Where that cannot be made, the medium
    cannot be written, so nobody else writes either and the store may be read as it is. Raises StoreError.
    """
    address = path.absolute().as_uri()
    try:
        with closing(sqlite3.connect(f"{address}?mode=ro", uri=True, timeout=30)) as connection:
            connection.execute("SELECT count(*) FROM runs").fetchone()
    except sqlite3.OperationalError as error:
        if "unable to open" not in str(error) and "readonly" not in str(error):
            raise
        log = path.with_name(f"{path.name}-wal")
        if log.exists() and log.stat().st_size:
            raise StoreError(f"{path}: its newest rows are in {log.name}: copy both to a writable folder") from error
        return f"{address}?immutable=1"
    return f"{address}?mode=ro"


def _connect_to_read(path: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(address_to_read(path), uri=True, timeout=30)
    connection.execute("SELECT count(*) FROM runs").fetchone()
    return connection


def _connect(path: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(path, timeout=30)
    connection.execute("PRAGMA foreign_keys=ON")
    return connection


def _columns(connection: sqlite3.Connection, table: str) -> set[str]:
    return {name for _, name, *_ in connection.execute(f"PRAGMA table_info({table})")}


def _add_later_columns(connection: sqlite3.Connection) -> None:
    """Give an older store the columns that it lacks; what it holds stays as it is."""
    for table, columns in LATER_COLUMNS.items():
        present = _columns(connection, table)
        for name, kind in columns.items():
            if name not in present:
                connection.execute(f"ALTER TABLE {table} ADD COLUMN {name} {kind}")


def _write_ahead(connection: sqlite3.Connection) -> None:
    """Let several processes write; this changes the file, so it must be known to be ours."""
    connection.execute("PRAGMA journal_mode=WAL")
    # A crash of the process loses nothing at this level; only a power cut may lose the last transactions.
    connection.execute("PRAGMA synchronous=NORMAL")


def _launches(cases: int, calls: int, kernels: str, stood_in: str) -> Launches:
    return Launches(calls, Counter(json.loads(kernels)), Counter(json.loads(stood_in)), cases)


def outcome_fields(outcome: Outcome) -> dict[str, Any]:
    """The outcome as plain data for JSON."""
    return {**asdict(outcome), "verdict": outcome.verdict.value, "fallbacks": list(outcome.fallbacks)}
