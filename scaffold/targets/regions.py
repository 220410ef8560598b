"""Marked regions: the parts of a generated file that are written by hand, kept when the file is generated again.

A region begins and ends with a comment on a separate line, `// mpsmith: begin NAME` and `// mpsmith: end NAME` (with
`#` in Python). The lines between belong to the user.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from ..errors import ScaffoldError

_MARK = re.compile(r"^[ \t]*(?://|#) mpsmith: (?P<what>begin|end) (?P<name>[\w.]+)[ \t]*(?:[—:-].*)?$", re.MULTILINE)


def regions_of(text: str, source: str) -> dict[str, str]:
    """The content of every region by name. Raises ScaffoldError that names file and line when a mark is missing."""
    contents: dict[str, str] = {}
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
            contents[begun[0]] = text[begun[1] : mark.start()]
            begun = None
    if begun is not None:
        raise ScaffoldError(f"{source}: the region {begun[0]} has no end")
    return contents


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


def bare(text: str, source: str) -> str:
    """The text without the contents of its regions, to detect edits outside them."""
    return with_regions(text, dict.fromkeys(regions_of(text, source), ""), source)[0]


@dataclass(frozen=True)
class Merged:
    """A generated text with the regions of an older one.

    Attributes:
        text: the merged text.
        has_regions: whether the older text had any.
        lost: the hand-written regions that the generated text does not have.
        outside: the older text without the contents of its regions.
    """

    text: str
    has_regions: bool
    lost: tuple[str, ...]
    outside: str


def merged(generated: str, before: str, source: str, ancestor: str | None = None) -> Merged:
    """Copy the regions of an older text into a generated one.

    `ancestor`: the older text as it was generated; a region that is unchanged since then is generated again.
    Raises ScaffoldError when marks are damaged.
    """
    contents = regions_of(before, source)
    untouched = regions_of(ancestor, source) if ancestor is not None else {}
    written = {name: content for name, content in contents.items() if untouched.get(name) != content}
    text, without_place = with_regions(generated, written, source)
    lost = tuple(name for name in without_place if contents[name].strip())
    return Merged(text, bool(contents), lost, bare(before, source))
