"""The keys that docs/json.md names for each `--json`."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from mpsmith.cli.printing import JSON_VERSION

_DOCS = Path(__file__).parents[2] / "docs"
_ROW = re.compile(r"^\| (?P<commands>`[^|]+) \| (?P<keys>[^|]+) \|$", re.MULTILINE)
_COMMANDS = re.compile(r"`([^`]+)`")
_NAMES = re.compile(r"`([a-z_]+)`")
_KEYS_OF_ROWS = re.compile(r"\([^)]*\)")


def _read(document: str, first_line: str) -> dict[str, tuple[set[str], set[str]]]:
    """The keys that are always there and those of some calls: those behind the first semicolon."""
    table = (_DOCS / document).read_text("utf-8").partition(first_line)[2].partition("\n\n")[0]
    return {
        command: (set(_NAMES.findall(always)), set(_NAMES.findall(sometimes)))
        for row in _ROW.finditer(table)
        for always, _, sometimes in [_KEYS_OF_ROWS.sub("", row["keys"]).partition(";")]
        for command in _COMMANDS.findall(row["commands"])
    }


KEYS = _read("json.md", "| command | keys |")
KEYS["why"][0].update(_read("answers.md", "| key | value |").keys() - {"library"})


def documented(typed: str, text: str) -> Any:
    """The JSON that a command printed. It has the version and the keys that the document names for the command.

    A document that has only keys of some calls, such as the rows of several entries, need not have the others.
    """
    printed = json.loads(text)
    assert printed["version"] == JSON_VERSION or "format" in printed  # a format has its own version
    words = typed.split()
    always, sometimes = next(KEYS[name] for end in (2, 1) if (name := " ".join(words[:end])) in KEYS)
    keys = set(printed) - {"version"}
    assert keys
    assert keys <= always | sometimes, f"docs/json.md does not name {keys - always - sometimes}"
    assert keys <= sometimes or always <= keys, f"{typed} lacks {always - keys}, which docs/json.md names"
    return printed
