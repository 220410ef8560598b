"""What all pages share: the templates, the style sheet, and how data and scripts get into a page."""

from __future__ import annotations

import json
import re
from functools import cache
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup, escape

TEMPLATES = Path(__file__).parent / "templates"


@cache
def environment() -> Environment:
    """The templates of the pages: they escape what they are given, and a missing value is an error."""
    made = Environment(
        loader=FileSystemLoader(TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    made.filters["slug"] = slug
    made.filters["as_code"] = as_code
    return made


@cache
def source(name: str) -> Markup:
    """A style sheet or script as it stands in `templates`, to be put into a page or written beside it."""
    return Markup((TEMPLATES / name).read_text(encoding="utf-8"))


def in_script(data: Any) -> Markup:
    """JSON that can stand inside a script element: nothing in it can end the element or open a comment."""
    text = json.dumps(data, ensure_ascii=False, separators=(",", ":"))
    return Markup(text.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029"))


def given(name: str, data: Any) -> Markup:
    """A script that hands data to the page under a name. Pages opened from disk may load scripts, and no JSON."""
    return Markup("mpsmith.give({},{});\n").format(Markup(json.dumps(name)), in_script(data))


def slug(heading: str) -> str:
    """The id of a section: "Overloads at fault" is #overloads-at-fault."""
    return re.sub(r"[^a-z0-9]+", "-", heading.lower()).strip("-")


def as_code(text: str) -> Markup:
    """Text in which what stands between backticks is code."""
    parts = text.split("`")
    return Markup("").join(
        Markup("<code>{}</code>").format(part) if position % 2 else escape(part) for position, part in enumerate(parts)
    )
