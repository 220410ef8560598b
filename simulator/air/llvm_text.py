"""Helpers to read and write LLVM assembly: lists, types, names."""

from __future__ import annotations

import re
from typing import NamedTuple

_TOKEN = re.compile(r'"[^"]*"|[<(\[{]|[>)\]}]|,')
_PLAIN_NAME = re.compile(r"[\w.$-]+")
_VECTOR = re.compile(r"<(\d+) x (\w+)>")
_TYPE = re.compile(r"<\d+ x \w+>|ptr addrspace\(\d+\)|\w+")


class VectorType(NamedTuple):
    """A type: the number of elements (0 for a scalar) and the element type."""

    width: int
    element: str


def vector_type(text: str) -> VectorType:
    """`<4 x float>` as 4 and float; a scalar or a pointer as 0 and itself."""
    match = _VECTOR.fullmatch(text)
    return VectorType(int(match[1]), match[2]) if match else VectorType(0, text)


def split_list(text: str) -> list[str]:
    """Split at commas outside of brackets and strings."""
    words, start, depth = [], 0, 0
    for match in _TOKEN.finditer(text):
        token = match[0]
        if token in "<([{":
            depth += 1
        elif token in ">)]}":
            depth -= 1
        elif token == "," and not depth:
            words.append(text[start : match.start()].strip())
            start = match.end()
    last = text[start:].strip()
    return [*words, last] if last or words else []


def parenthesized(text: str, opening: int) -> str:
    """The text in the parentheses that open at `opening`. Raises ValueError if they do not close."""
    depth = 0
    for match in _TOKEN.finditer(text, opening):
        if match[0] == "(":
            depth += 1
        elif match[0] == ")":
            depth -= 1
            if not depth:
                return text[opening + 1 : match.start()]
    raise ValueError(f"no closing parenthesis in {text[opening : opening + 80]!r}")


def leading_type(text: str) -> str:
    """The type at the start of a parameter or an argument, without attributes.

    Raises ValueError for types that AIR never passes, such as structs by value.
    """
    match = _TYPE.match(text)
    if match is None:
        raise ValueError(f"an argument of the type {text!r}")
    return match[0]


def symbol(name: str) -> str:
    """The name of a global in assembly."""
    return f"@{name}" if _PLAIN_NAME.fullmatch(name) else f'@"{name}"'
