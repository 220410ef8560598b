"""Includes that differ from the header's name only in letter case: macOS finds the header, Linux does not."""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence
from pathlib import Path

from .diagnostics import Diagnostic

RULE = "letter-case"
_INCLUDE = re.compile(r"^[ \t]*#[ \t]*(?:include|import)[ \t]*[<\"](?P<name>[^>\"\n]+)[>\"]", re.MULTILINE)


def forward_includes(path: Path, text: str, flags: Sequence[str], folder: Path) -> list[Diagnostic]:
    """For each such include of a file, write a header into `folder` that includes the right one.

    `flags` have the folders that are searched. Returns a warning for each include.
    """
    pairs = itertools.pairwise(flags)
    folders = [path.parent, *(Path(value) for flag, value in pairs if flag in ("-I", "-isystem"))]
    warnings = []
    for include in _INCLUDE.finditer(text):
        name = include["name"]
        if any((place / name).is_file() for place in folders):
            continue
        real = next((other for place in folders if (other := _other_case(place, name))), None)
        if real is None:
            continue
        header = folder / name
        header.parent.mkdir(parents=True, exist_ok=True)
        header.write_text(f'#pragma once\n#include "{real}"\n')
        line = text.count("\n", 0, include.start()) + 1
        right = Path(*real.parts[-len(Path(name).parts) :])
        message = f"<{name}> is {right}: a file system that tells upper from lower case does not find it"
        warnings.append(Diagnostic(str(path), line, 0, "warning", message, RULE))
    return warnings


def _other_case(folder: Path, name: str) -> Path | None:
    """The file that a case-insensitive file system would find; None if there is none."""
    place = folder
    for part in Path(name).parts:
        try:
            place = next(entry for entry in place.iterdir() if entry.name.lower() == part.lower())
        except (StopIteration, OSError):
            return None
    return place if place.is_file() else None
