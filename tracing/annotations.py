"""Annotations of source lines, as GitHub Actions reads them from a step's output."""

from __future__ import annotations

import os
from collections.abc import Iterator

from .summary import Summary
from .text import shown_file


def github(summary: Summary, *, failing: bool) -> Iterator[str]:
    """A line for each call site with a fallback: an error if the fallback is forbidden, else a warning."""
    for at in summary.fallbacks:
        if not at.site.file:
            continue
        level = "error" if failing and at.overload in summary.forbidden else "warning"
        calls = "once" if at.calls == 1 else f"{at.calls} times"
        when = " in its backward" if at.backward else ""
        file = shown_file(os.path.realpath(at.site.file))
        message = f"{at.overload} ran on the CPU {calls}{when}"
        yield f"::{level} file={_property(file)},line={at.site.line},title=mps fallback::{_escaped(message)}"


def _escaped(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _escaped(text).replace(":", "%3A").replace(",", "%2C")
