"""The keys that docs/json.md names for each `--json`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from mpsmith.cli.printing import JSON_VERSION

_DOCUMENT = Path(__file__).parents[2] / "docs" / "json.md"
_ROW = re.compile(r"^\| (?P<commands>`[^|]+) \| (?P<keys>[^|]+) \|$", re.MULTILINE)
_NAMES = re.compile(r"`([^`]+)`")
KEYS = {
    command: set(_NAMES.findall(row["keys"]))
    for row in _ROW.finditer(_DOCUMENT.read_text("utf-8"))
    for command in _NAMES.findall(row["commands"])
}


def undocumented(typed: str, printed: Mapping[str, object]) -> set[str]:
    """The keys that a command printed and the document does not name for it. The version must be there."""
    assert printed["version"] == JSON_VERSION
    words = typed.split()
    described = next(KEYS[name] for end in (2, 1) if (name := " ".join(words[:end])) in KEYS)
    if not described:  # `why` has its own document
        return set()
    return set(printed) - described - {"rows", "version"}
