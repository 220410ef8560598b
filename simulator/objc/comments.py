"""Removes comments from C++, Objective-C++ and Metal source, but not from literals such as `"https://..."`."""

from __future__ import annotations

import re

# Whatever begins first matches first, so a `//` inside of a literal is not a comment. A quote between digits is a
# separator. A line comment continues after a backslash at the end of its line.
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
    """The source with a space for each comment; line numbers stay."""
    return _COMMENT_OR_LITERAL.sub(_without_comment, text)


def blanked(text: str) -> str:
    """The source with spaces for comments and literals; offsets stay."""
    return _COMMENT_OR_LITERAL.sub(lambda match: _NO_LINE_END.sub(" ", match[0]), text)


def _without_comment(match: re.Match[str]) -> str:
    comment = match["comment"]
    return match[0] if comment is None else " " + "\n" * comment.count("\n")
