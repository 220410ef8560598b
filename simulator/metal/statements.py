"""Finds the ends of statements of Metal source."""

from __future__ import annotations

from .tokens import Tokens

LOOPS = frozenset({"for", "while", "do"})
BRANCHES = frozenset({"if", "switch"})


def is_call(text: list[str], i: int) -> bool:
    """Whether the name at `i` is called, with or without template arguments."""
    return text[i + 1] == "(" or text[i + 1] == "<"


def ends_do(tokens: Tokens, i: int) -> bool:
    """Whether the `while` at `i` belongs to a `do`: then a `;` follows its condition."""
    close = tokens.pair.get(i + 1)
    return close is not None and tokens.text[close + 1].startswith(";") and tokens.text[i - 1].startswith("}")


def statement_end(tokens: Tokens, i: int) -> int:
    """Index of the last token of the statement that starts at `i`."""
    text, pair = tokens.text, tokens.pair
    if text[i].startswith("{"):
        return pair[i]
    if text[i] == "if":
        condition = i + 2 if text[i + 1] == "constexpr" else i + 1
        end = statement_end(tokens, pair[condition] + 1)
        return statement_end(tokens, end + 2) if text[end + 1] == "else" else end
    if text[i] in ("for", "while", "switch"):
        return statement_end(tokens, pair[i + 1] + 1)
    if text[i] == "do":
        return pair[statement_end(tokens, i + 1) + 2] + 1
    while i < len(text) - 1 and not text[i].startswith(";"):
        # A rewritten literal such as 2.0h begins with a bracket that has no pair.
        i = pair[i] + 1 if i in pair and text[i][:1] in ("(", "[", "{") else i + 1
    return i
