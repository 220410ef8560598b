"""What became of each file and test of a checkout."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum


class TryResult(str, Enum):
    """What became of one file or test."""

    RIGHT = "right"
    ACCEPTED = "accepted"
    WRONG = "wrong"
    DEFECT = "defect of the project"
    REFUSED = "refused by mpsmith"
    SKIPPED = "skipped"


FAILURES = (TryResult.WRONG, TryResult.DEFECT, TryResult.REFUSED)


@dataclass(frozen=True)
class TryRow:
    """One file, extension or test.

    Attributes:
        kind: `metal`, `host` (code that is wrong on a Mac), `extension` or `test`.
        name: the file, the module or the test.
        result: what became of it. A test is `right`; what was only compiled is `accepted`.
        reason: why it did not pass, on one line.
        file: where the reason lies; "" where that is not known.
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


def passed(rows: Sequence[TryRow]) -> bool:
    """Whether nothing failed, and a test is right."""
    results = [row.result for row in rows]
    return TryResult.RIGHT in results and not set(results).intersection(FAILURES)
