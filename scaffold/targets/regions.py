"""Marked regions: the parts of a generated file that are written by hand, kept when the file is generated again.

A region begins and ends with a comment on a line of its own, `// mpsmith: begin NAME` and `// mpsmith: end NAME` (with
`#` in Python). What stands between belongs to whoever edited the file.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from ..errors import ScaffoldError

_MARK = re.compile(r"^[ \t]*(?://|#) mpsmith: (?P<what>begin|end) (?P<name>[\w.]+)[ \t]*(?:[—:-].*)?$", re.MULTILINE)


def regions_of(text: str, source: str) -> dict[str, str]:
    """The content of every region by name. Raises ScaffoldError that names file and line when a mark is missing."""
    found: dict[str, str] = {}
    begun: tuple[str, int] | None = None
    for mark in _MARK.finditer(text):
        line = text.count("\n", 0, mark.start()) + 1
        if mark["what"] == "begin":
            if begun is not None:
                raise ScaffoldError(f"{source}:{line}: the region {begun[0]} does not end before this one begins")
            begun = (mark["name"], mark.end() + 1)
        elif begun is None or begun[0] != mark["name"]:
            raise ScaffoldError(f"{source}:{line}: the end of a region {mark['name']} that does not begin")
        else:
            found[begun[0]] = text[begun[1] : mark.start()]
            begun = None
    if begun is not None:
        raise ScaffoldError(f"{source}: the region {begun[0]} has no end")
    return found


def with_regions(text: str, contents: Mapping[str, str], source: str) -> tuple[str, list[str]]:
    """The text with the given contents in its regions of the same names; and the names that it has no region for.

    Raises ScaffoldError when the text's own marks are damaged.
    """
    own = regions_of(text, source)
    pieces: list[str] = []
    position = 0
    begun: str | None = None
    start = 0
    for mark in _MARK.finditer(text):
        if mark["what"] == "begin":
            begun, start = mark["name"], mark.end() + 1
        elif begun is not None:
            pieces += [text[position:start], contents.get(begun, text[start : mark.start()])]
            position, begun = mark.start(), None
    return "".join([*pieces, text[position:]]), [name for name in contents if name not in own]
