"""Diagnostics of compilers and checkers, and a parser for clang's output."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

COMPILE = "compile"
"""The rule of messages from the compiler."""

Severity = Literal["error", "warning", "note"]


@dataclass(frozen=True)
class Diagnostic:
    """An error, a warning or a note. `line` and `column` count from 1; 0 is unknown.

    `rule` names the warning or the check.
    """

    file: str
    line: int
    column: int
    severity: Severity
    message: str
    rule: str

    def __str__(self) -> str:
        location = self.file + (f":{self.line}" if self.line else "") + (f":{self.column}" if self.column else "")
        rule = "" if self.rule == COMPILE else f" [{self.rule}]"
        return f"{location}: {self.severity}: {self.message}{rule}"


@dataclass(frozen=True)
class Note:
    """A note of clang: another location, or a reason."""

    file: str
    line: int
    text: str


@dataclass(frozen=True)
class Message:
    """One error or warning of clang with the notes that explain it. `flag`: the warning's name, empty for an error."""

    file: str
    line: int
    column: int
    severity: Severity
    text: str
    flag: str
    notes: tuple[Note, ...] = ()


_LINE = re.compile(
    r"^(?P<file>.+?):(?P<line>\d+):(?P<column>\d+): (?P<kind>fatal error|error|warning|note): (?P<text>.*?)"
    r"(?: \[-W(?:error,-W)?(?P<flag>[\w+-]+)(?:,-W[\w+-]+)?\])?$"
)


def messages(stderr: str) -> Iterator[Message]:
    """Clang's errors and warnings in output with PLAIN_MESSAGES."""
    current: Message | None = None
    notes: list[Note] = []
    for line in stderr.splitlines():
        parts = _LINE.match(line)
        if parts is None:
            continue
        if parts["kind"] == "note":
            notes.append(Note(parts["file"], int(parts["line"]), parts["text"]))
            continue
        if current is not None:
            yield _with_notes(current, notes)
        notes = []
        severity: Severity = "warning" if parts["kind"] == "warning" else "error"
        location = parts["file"], int(parts["line"]), int(parts["column"])
        current = Message(*location, severity, parts["text"], parts["flag"] or "")
    if current is not None:
        yield _with_notes(current, notes)


def _with_notes(message: Message, notes: list[Note]) -> Message:
    return Message(
        message.file, message.line, message.column, message.severity, message.text, message.flag, tuple(notes)
    )
