"""Tokens of preprocessed Metal source.

Line markers and white space belong to the token that follows them. So adjacent tokens are adjacent in the grammar, and
tokens can be changed without changing line numbers.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

_TOKEN = re.compile(
    r"""
    ((?: \s+ | \#[^\n]* )*)                                     # white space and line markers
    (
      [A-Za-z_]\w*
    | \.?[0-9](?: [eEpP][+-] | [0-9a-zA-Z_.'] )*
    | "(?: \\. | [^"\\] )*" | '(?: \\. | [^'\\] )*'
    | :: | ->\*? | \+\+ | -- | <<= | >>= | <= | >= | == | != | && | \|\| | [-+*/%&|^]= | \.\.\. | <<
    | \S
    | \Z
    )""",
    re.VERBOSE | re.DOTALL,
)
_MARKER = re.compile(r'^[ \t]*\#[ ]*(?:line[ ]+)?(\d+)(?:[ ]+"((?:\\.|[^"\\])*)")?[^\n]*$', re.MULTILINE)
_OPENING = {"(": ")", "[": "]", "{": "}"}
_CLOSING = frozenset(")]}")


@dataclass(frozen=True)
class Location:
    """A line of the Metal source."""

    file: str
    line: int


class UnbalancedError(Exception):
    """The brackets do not match; clang reports where."""


@dataclass
class Tokens:
    """Tokens with the space in front of each; `pair` maps the index of each bracket to that of its partner."""

    text: list[str]
    space: list[str]
    pair: dict[int, int] = field(default_factory=dict)

    @classmethod
    def of(cls, source: str) -> Tokens:
        """Tokenize preprocessed source."""
        pairs = _TOKEN.findall(source)
        return cls([token for _, token in pairs], [space for space, _ in pairs])

    def __len__(self) -> int:
        return len(self.text)

    def join(self) -> str:
        """The source with all changes."""
        parts = [""] * (2 * len(self.text))
        parts[0::2] = self.space
        parts[1::2] = self.text
        return "".join(parts)

    def span(self, begin: int, end: int) -> str:
        """Tokens `begin` to `end - 1` on one line, with single spaces."""
        words = []
        for i in range(begin, end):
            if self.text[i]:
                if i > begin and self.space[i]:
                    words.append(" ")
                words.append(self.text[i])
        return "".join(words)

    def match_brackets(self) -> None:
        """Fill `pair`.

        Raises:
            UnbalancedError: a bracket has no partner.
        """
        pair: dict[int, int] = {}
        stack: list[int] = []
        text = self.text
        for i, token in enumerate(text):
            if token in _OPENING:
                stack.append(i)
            elif token in _CLOSING:
                if not stack or _OPENING[text[stack[-1]]] != token:
                    raise UnbalancedError
                opening = stack.pop()
                pair[opening] = i
                pair[i] = opening
        if stack:
            raise UnbalancedError
        self.pair = pair

    def close_angle(self, i: int) -> int | None:
        """Index of the `>` that closes the template list at `i`, or None if `i` is a less-than sign."""
        depth = 0
        text = self.text
        while i < len(text):
            token = text[i]
            if token in _OPENING:
                i = self.pair[i]
            elif token == "<" and (text[i - 1].isidentifier()):
                depth += 1
            elif token == ">":
                depth -= 1
                if depth == 0:
                    return i
            elif token in (";", "}", ")", "]"):
                return None
            i += 1
        return None

    def erase(self, begin: int, end: int) -> None:
        """Remove tokens `begin` to `end - 1`; line numbers stay."""
        for i in range(begin, end):
            self.text[i] = ""

    def locate(self, indices: list[int]) -> dict[int, Location]:
        """The source lines of tokens, in one pass."""
        wanted = set(indices)
        locations: dict[int, Location] = {}
        file, line = "program_source", 1
        for i, space in enumerate(self.space):
            if "\n" in space or "#" in space:
                file, line = _advance(space, file, line)
            if i in wanted:
                locations[i] = Location(file, line)
        return locations


def _advance(space: str, file: str, line: int) -> tuple[str, int]:
    """File and line after white space that may contain line markers."""
    position = 0
    for marker in _MARKER.finditer(space):
        line = int(marker[1])
        file = marker[2] if marker[2] is not None else file
        position = min(marker.end() + 1, len(space))
    return file, line + space.count("\n", position)
