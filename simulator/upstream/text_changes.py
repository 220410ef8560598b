"""Changes to the text of older releases for the headers of the installed torch and this machine's compiler."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

import yaml


@dataclass(frozen=True)
class TextChange:
    """A replacement in the text of host code, and why it is needed. Text without `old` is not changed."""

    old: str
    new: str
    reason: str


CHANGES = tuple(TextChange(**row) for row in yaml.safe_load(Path(__file__).with_suffix(".yaml").read_text("utf-8")))

# The type of int64_t on macOS, which is another one here, of the same size.
_INT64_OF_MACOS = re.compile(r"\blong\s+long\b")
# A format in a variable: fmt checks formats at compile time since C++20, and this one is known at run time.
_FORMAT = re.compile(r"\bfmt::format\((\w+(?: \? \w+ : \w+)?),")


def changed_text(text: str) -> str:
    """The text with all changes and with this machine's int64_t; line numbers stay."""
    for change in CHANGES:
        text = text.replace(change.old, change.new)
    return _FORMAT.sub(r"fmt::format(fmt::runtime(\1),", _INT64_OF_MACOS.sub("long", text))
