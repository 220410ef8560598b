"""Comments of C++, Objective-C++ and Metal source, told from what stands in literals: `"https://..."` has none."""

from __future__ import annotations

import re

# A literal is found first where it begins first, so that what looks like a comment inside is passed over. A quote
# between digits separates them. A line comment goes on where its line ends in a backslash.
_COMMENT_OR_LITERAL = re.compile(
    r"""
    (?P<comment> //(?: \\[ \t]*\r?\n | [^\n] )* | /\*.*?(?: \*/ | \Z ) )
    | \b(?:u8|[uUL])?R"(?P<delimiter> [^()\\\s"]{0,16} )\( .*? \)(?P=delimiter)"
    | "(?: \\. | [^"\\\n] )*"
    | (?<![0-9A-Fa-f])'(?: \\. | [^'\\\n] )+'
    """,
    re.VERBOSE | re.DOTALL,
)
_NO_LINE_END = re.compile(r"[^\n]")


def without_comments(text: str) -> str:
    """The source with a space for each comment, and with the line ends inside of it: lines keep their numbers."""
    return _COMMENT_OR_LITERAL.sub(_without_comment, text)


def blanked(text: str) -> str:
    """The source with spaces for comments and literals, character by character: what is left keeps its place."""
    return _COMMENT_OR_LITERAL.sub(lambda found: _NO_LINE_END.sub(" ", found[0]), text)


def _without_comment(found: re.Match[str]) -> str:
    comment = found["comment"]
    return found[0] if comment is None else " " + "\n" * comment.count("\n")
