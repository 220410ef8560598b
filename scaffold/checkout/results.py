"""Results of each file and test of a checkout."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from enum import Enum


class TryResult(str, Enum):
    """The result of one file or test."""

    RIGHT = "right"
    ACCEPTED = "accepted"
    WRONG = "wrong"
    DEFECT = "defect of the project"
    REFUSED = "refused by mpsmith"
    SKIPPED = "skipped"
    NOT_RUN = "not run"


FAILURES = (TryResult.WRONG, TryResult.DEFECT, TryResult.REFUSED)


@dataclass(frozen=True)
class TryRow:
    """One file, extension or test.

    Attributes:
        kind: `metal`, `host` (code that is wrong on a Mac), `extension` or `test`.
        name: the file, the module or the test.
        result: a test that passes is `right`; what was only compiled is `accepted`.
        reason: why it did not pass, on one line.
        file: the file with the cause; "" if that is not known.
        line: the line in it, or 0.
    """

    kind: str
    name: str
    result: TryResult
    reason: str = ""
    file: str = ""
    line: int = 0

    def as_json(self) -> dict[str, object]:
        """The row as plain data."""
        place = {"file": self.file, "line": self.line}
        return {"kind": self.kind, "name": self.name, "result": self.result.value, "reason": self.reason, **place}


@dataclass
class TryPlan:
    """The files and tests to try, as far as they are known; kinds and names are those of the rows."""

    _names: dict[tuple[str, str], None] = field(default_factory=dict)

    def add(self, kind: str, names: Iterable[str], instead: str = "") -> None:
        """Add names of a kind; `instead`: the earlier name that they replace."""
        self._names.pop((kind, instead), None)
        self._names.update(dict.fromkeys((kind, name) for name in names))

    def add_tests(self, tests: Iterable[str]) -> None:
        """Replace the files by the tests that were collected in them. A file without selected tests is dropped."""
        self._names = {name: None for name in self._names if name[0] != "test" or "::" in name[1]}
        self.add("test", tests)

    def left(self, rows: Iterable[TryRow]) -> list[TryRow]:
        """A row for each planned name that has no row yet."""
        ended = {(row.kind, row.name) for row in rows}
        reason = "the command was stopped before it ended"
        return [TryRow(*name, TryResult.NOT_RUN, reason) for name in self._names if name not in ended]


def passed(rows: Sequence[TryRow]) -> bool:
    """Whether nothing failed, everything was run, and at least one test is right."""
    results = [row.result for row in rows]
    return TryResult.RIGHT in results and not set(results).intersection({*FAILURES, TryResult.NOT_RUN})
