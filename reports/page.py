"""One page: its head, what it loads, and the frame that all pages have."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from .. import __version__
from .look import environment, source

# The first is needed before anything is drawn: it knows the theme.
SCRIPTS = ("site.js", "search.js", "details.js", "explorer.js", "start.js", "tables.js")


@dataclass(frozen=True)
class Page:
    """What the frame of a page shows.

    Attributes:
        file: its name in a site.
        title, subtitle: of the audit, or of what the page is about.
        simulated_note: what a simulated run is no evidence of; "" where a Mac was asked.
        links: the pages of the site: file and name.
        scripts: files of `templates`.
        data: names of data files of the site; in a page that stands alone the scripts themselves.
        wide: the page is mostly a table.
        inline: the page stands alone: it holds the style, scripts and data.
        root: from the page's folder to the site's: "" or "../".
    """

    file: str
    title: str
    subtitle: str = ""
    simulated_note: str = ""
    links: Sequence[tuple[str, str]] = ()
    scripts: Sequence[str] = ("site.js", "tables.js")
    data: Sequence[str] = ()
    wide: bool = False
    inline: bool = False
    root: str = ""

    def render(self, template: str, **content: Any) -> str:
        """The page as text: `template` fills the frame with `content`."""
        return environment().get_template(template).render(page=self, source=source, version=__version__, **content)
