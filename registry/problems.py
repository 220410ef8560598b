"""What is wrong in the registry's files, each with the place where it stands."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path

from ..errors import MpsmithError


@dataclass(frozen=True)
class Problem:
    """One thing to mend in a file; `line` and `column` count from 1."""

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
    """One error that lists all `problems`, a line each, in the order of files and lines."""
    listed = sorted(problems, key=lambda problem: (str(problem.path), problem.line, problem.column))
    if len(listed) == 1:
        return RegistryError(str(listed[0]), listed)
    lines = [f"the registry has {len(listed)} problems", *(f"  {problem}" for problem in listed)]
    return RegistryError("\n".join(lines), listed)


def near(word: str, known: Iterable[str]) -> str:
    """A question that suggests the known words nearest to `word`, or nothing where none is near."""
    candidates = get_close_matches(word, list(known), n=3, cutoff=0.6)
    return f" (did you mean {' or '.join(candidates)}?)" if candidates else ""


def shown(path: Path) -> str:
    """The path as a person at this prompt would write it."""
    try:
        return str(path.relative_to(Path.cwd()))
    except ValueError:
        return str(path)
