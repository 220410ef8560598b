"""Writes a site into a folder; unchanged files are not written again."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from ..html_templates import SCRIPTS, asset
from ..publish import FILES, write
from . import audits
from .content import SiteContent
from .pages import DATA_FILES, Site

# Optional pages, which are removed when a new site does not have them.
_PAGES = re.compile(r"(index|operators|releases|audits|devices|device-[\w-]+|findings|kernels|compiled|run)\.html")
# The folder of the operators' pages, which holds nothing else.
OPERATORS = "operators"


def write_site(content: SiteContent, folder: Path) -> list[Path]:
    """Write the site into `folder`, which is made if necessary; returns its paths, those of the pages first.

    Everything is rendered before the first file changes, and obsolete pages of an earlier site are
    removed.
    Raises MpsmithError when the folder refuses.
    """
    named = dict(files(content))
    named[audits.INDEX] = audits.index(folder, *(name for name in named if name.startswith(f"{audits.FOLDER}/")))
    rendered = [(folder / name, text) for name, text in named.items()]
    for path, text in rendered:
        if not _holds(path, text):
            write(path, text)
    kept = {path for path, _ in rendered}
    for path in (*folder.glob("*.html"), *(folder / OPERATORS).glob("*.html")):
        if path not in kept and (_PAGES.fullmatch(path.name) or path.parent.name == OPERATORS):
            path.unlink()
    return [path for path, _ in rendered]


def files(content: SiteContent) -> Iterator[tuple[str, str]]:
    """Every file of a site: its path in the folder, and its text."""
    site = Site(content)
    yield from site.pages()
    renders = dict(FILES.values())
    for name in DATA_FILES:
        yield name, renders[name](content.summary)
    for name in ("site.css", *SCRIPTS):
        yield f"assets/{name}", asset(name)
    yield from site.data()


def _holds(path: Path, text: str) -> bool:
    try:
        return path.read_bytes() == text.encode()
    except OSError:
        return False
