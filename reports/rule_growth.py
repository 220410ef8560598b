"""How many cases each rule explained in the published audit, to name the rules that explain many more now."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ..audit.model.selection import is_narrowed
from .wording import settings_text

PUBLISHED = Path(__file__).parent / "published" / "coverage.md"
# A rule that explains this many times the published cases is named: a release may have become worse.
GROWTH = 1.2
_ROW = re.compile(r"^\| `([a-z0-9]+(?:-[a-z0-9]+)+)` \| ([\d,]+) \| [\d,]+ ", re.MULTILINE)


def published_counts(settings: Mapping[str, Any], published: Path = PUBLISHED) -> dict[str, int]:
    """The cases by rule in the published audit; empty if there is none of an audit with these settings."""
    if is_narrowed(settings) or not published.is_file():
        return {}
    text = published.read_text(encoding="utf-8")
    if f"; {settings_text(settings)}." not in text:
        return {}
    return {name: int(cases.replace(",", "")) for name, cases in _ROW.findall(text)}


def grown_rules(cases: Mapping[str, int], settings: Mapping[str, Any], published: Path = PUBLISHED) -> list[str]:
    """A phrase for each rule that explains a fifth more cases than in the published audit: "x 38, published 16"."""
    before = published_counts(settings, published)
    return [
        f"{name} {count:,}, published {before.get(name, 0):,}"
        for name, count in cases.items()
        if before and count > GROWTH * before.get(name, 0)
    ]
