"""Renders HTML pages: the templates, the frame of a page, and how data and scripts are put into it."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup, escape

from .. import __version__

TEMPLATES = Path(__file__).parent / "templates"


@cache
def templates() -> Environment:
    """The jinja templates. They escape every value; a missing value is an error."""
    environment = Environment(
        loader=FileSystemLoader(TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters["slug"] = slug
    environment.filters["as_code"] = as_code
    return environment


@cache
def asset(name: str) -> Markup:
    """A style sheet or script out of the folder `templates`."""
    return Markup((TEMPLATES / name).read_text(encoding="utf-8"))


def in_script(data: Any) -> Markup:
    """JSON that is safe inside a script element: it cannot end the element or open a comment."""
    text = json.dumps(data, ensure_ascii=False, separators=(",", ":"))
    return Markup(text.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029"))


def data_script(name: str, data: Any) -> Markup:
    """A script that gives data to the page under a name. A page opened from disk can load scripts, but no JSON."""
    return Markup("mpsmith.give({},{});\n").format(Markup(json.dumps(name)), in_script(data))


def slug(heading: str) -> str:
    """The id of a section: "Overloads at fault" is #overloads-at-fault."""
    return re.sub(r"[^a-z0-9]+", "-", heading.lower()).strip("-")


def as_code(text: str) -> Markup:
    """The text as HTML; text between backticks becomes code."""
    parts = text.split("`")
    return Markup("").join(
        Markup("<code>{}</code>").format(part) if position % 2 else escape(part) for position, part in enumerate(parts)
    )


# Scripts of a site. The first sets the theme, before anything is drawn.
SCRIPTS = (
    *("site.js", "search.js", "details.js", "explorer.js", "tables.js"),
    *("start.js", "operator.js", "changes.js"),
)


@dataclass(frozen=True)
class HtmlPage:
    """An HTML page: its head, the frame around its content, and what it loads.

    Attributes:
        file: its name in a site.
        title, subtitle: its headings.
        simulated_note: what a simulated run is not evidence of; "" for a real Mac.
        links: the pages of the site, each with its file and name.
        scripts: files in the folder `templates`.
        data: names of data files of the site.
        wide: whether the page is mostly a table.
        root: the path from the page's folder to the site's: "" or "../".
    """

    file: str
    title: str
    subtitle: str = ""
    simulated_note: str = ""
    links: Sequence[tuple[str, str]] = ()
    scripts: Sequence[str] = ("site.js", "tables.js")
    data: Sequence[str] = ()
    wide: bool = False
    root: str = ""

    def render(self, template: str, **content: Any) -> str:
        """The page as text: `template` fills the frame with `content`."""
        return templates().get_template(template).render(page=self, version=__version__, **content)
