"""Definitions of a C++ or Metal file that nothing in it uses, such as inlined helpers of another family."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable

# A definition at the beginning of a line, to the brace that closes there, and the comment above it.
_DEFINITION = re.compile(
    r"(?:^//.*\n)*^(?:template <.*>[ \n])?"
    r"(?:TORCH_IMPL_FUNC\((?P<structured>\w+)\)|struct (?P<type>\w+)|[A-Za-z][\w:<>&*, ]*[ &](?P<name>\w+)\()[^;{}]*\{"
    r"(?:[^\n]*\};?\n|\n(?:(?!\}).*\n)*\};?\n)\n?",
    re.MULTILINE,
)


def defined(text: str) -> dict[str, list[str]]:
    """The definitions of each function and struct: overloads and specializations have several."""
    definitions: dict[str, list[str]] = {}
    for match in _DEFINITION.finditer(text):
        definitions.setdefault(match["structured"] or match["type"] or match["name"], []).append(match[0])
    return definitions


def without(text: str, unwanted: Iterable[str], kept: Collection[str] = ()) -> str:
    """The text without those of the unwanted names that nothing else uses, nor what only they used.

    `kept`: names that stay, whether used or not.
    """
    definitions, waiting = defined(text), list(unwanted)
    while waiting:
        name = waiting.pop()
        own = definitions.get(name, [])
        used = len(re.findall(rf"\b{name}\b", text)) > sum(len(re.findall(rf"\b{name}\b", part)) for part in own)
        if own and name not in kept and not used:
            for part in definitions.pop(name):
                text = text.replace(part, "")
                waiting += [word for word in re.findall(r"\w+", part) if word in definitions]
    return text
