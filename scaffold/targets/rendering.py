"""Renders the templates of this package."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import jinja2

TEMPLATES = Path(__file__).parent / "templates"


@cache
def _environment() -> jinja2.Environment:
    return jinja2.Environment(
        loader=jinja2.FileSystemLoader(TEMPLATES),
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        autoescape=False,  # what is rendered is source code
    )


def render(template: str, /, **values: object) -> str:
    """The text of a template such as `extension/kernel.mm.j2`, without trailing blanks.

    At most two empty lines follow each other in Python, and one in other files.
    """
    text = _environment().get_template(template).render(**values)
    most = 2 if template.endswith(".py.j2") else 1
    tidy: list[str] = []
    for line in (line.rstrip() for line in text.splitlines()):
        if line or any(tidy[-most:]):
            tidy.append(line)
    return "\n".join(tidy).strip("\n") + "\n"
