"""Hints for names that do not exist."""

from __future__ import annotations

from mpsmith.errors import near

OPERATORS = ["mode", "median", "softshrink", "add"]


def test_near_names_are_suggested_the_nearest_first() -> None:
    assert near("moed", OPERATORS) == " (did you mean mode?)"
    assert near("medan", iter(["mean", *OPERATORS])) == " (did you mean median or mean?)"


def test_where_none_is_near_the_message_says_where_to_look() -> None:
    assert near("xyzzy", OPERATORS) == ""
    assert near("xyzzy", OPERATORS, "`mpsmith coverage --operators` lists all operators") == (
        " (`mpsmith coverage --operators` lists all operators)"
    )
    assert near("xyzzy", []) == ""
