"""Selects operators by shell pattern, and suggests similar names if nothing matches."""

from __future__ import annotations

import fnmatch
from collections.abc import Iterable, Sequence

from ....errors import MpsmithError, near


def select_names(names: Sequence[str], patterns: Iterable[str]) -> list[str]:
    """The names of overloads, with or without namespace, that match any pattern; all if there is no pattern.

    `softmax`, `aten::softmax`, `softmax.int` and `_foreach_*` are patterns; one without an overload selects all
    overloads of the operator. Raises MpsmithError with similar names for a pattern that matches nothing.
    """
    wanted = list(patterns)
    if not wanted:
        return list(names)
    selected: set[str] = set()
    for pattern in wanted:
        matching = {name for name in names if _matches(name, pattern)}
        if not matching:
            raise MpsmithError(f"no operator matches {pattern}{_suggestion(names, pattern)}")
        selected |= matching
    return [name for name in names if name in selected]


def _qualified(name: str) -> str:
    return name if "::" in name else f"aten::{name}"


def _matches(name: str, pattern: str) -> bool:
    full, wanted = _qualified(name), _qualified(pattern)
    return fnmatch.fnmatchcase(full, wanted) or fnmatch.fnmatchcase(full.partition(".")[0], wanted)


def _suggestion(names: Sequence[str], pattern: str) -> str:
    operators = {_qualified(name).removeprefix("aten::").partition(".")[0] for name in names}
    plain = pattern.removeprefix("aten::").partition(".")[0]
    return near(plain, operators, "`mpsmith coverage --operators` lists all operators")
