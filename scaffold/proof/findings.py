"""What a check has to say about a file, in the form in which compilers say it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Literal

Severity = Literal["error", "warning", "note"]


@dataclass(frozen=True)
class Finding:
    """One thing to mend or to know. `line` and `column` count from 1; 0 stands for not known.

    `rule` names the step that found it: `compile` or a clang warning, `link`, `registration`, `metal`, `patch`.
    """

    file: str
    line: int
    column: int
    severity: Severity
    message: str
    rule: str

    def __str__(self) -> str:
        place = self.file + (f":{self.line}" if self.line else "") + (f":{self.column}" if self.column else "")
        return f"{place}: {self.severity}: {self.message} [{self.rule}]"

    def as_json(self) -> dict[str, str | int]:
        """The fields, for `--json` and the cache of answers."""
        return asdict(self)


def has_errors(findings: Iterable[Finding]) -> bool:
    """Whether any finding is an error."""
    return any(finding.severity == "error" for finding in findings)


def line_of(text: str, needle: str) -> int:
    """The line of the first place where `needle` stands, from 1; 0 when it is nowhere."""
    position = text.find(needle)
    return text.count("\n", 0, position) + 1 if position >= 0 else 0
