"""Problems in the registry's files, with their positions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ..errors import MpsmithError


@dataclass(frozen=True, order=True)
class Problem:
    """One thing to fix in a file; `line` and `column` count from 1. Problems are ordered by file, line and column."""

    path: Path
    line: int
    column: int
    message: str

    def __str__(self) -> str:
        return f"{shown(self.path)}:{self.line}:{self.column}: {self.message}"


class RegistryError(MpsmithError):
    """The registry cannot be read, edited or written. `problems` holds every place in the files that has to change."""

    def __init__(self, message: str, problems: Sequence[Problem] = ()):
        super().__init__(message)
        self.problems = tuple(problems)


def error_of(problems: Sequence[Problem]) -> RegistryError:
    """One error that lists all `problems`, a line each."""
    if len(problems) == 1:
        return RegistryError(str(problems[0]), problems)
    lines = [f"the registry has {len(problems)} problems", *(f"  {problem}" for problem in problems)]
    return RegistryError("\n".join(lines), problems)


def shown(path: Path) -> str:
    """The path relative to the current folder, if it is inside."""
    try:
        return str(path.relative_to(Path.cwd()))
    except ValueError:
        return str(path)
