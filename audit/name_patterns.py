"""Operators by shell pattern, with near names suggested where nothing matches."""

from __future__ import annotations

import difflib
import fnmatch
from collections.abc import Iterable, Sequence

from ..errors import MpsmithError
from .overloads import Overload


def select_overloads(overloads: Sequence[Overload], patterns: Iterable[str]) -> list[Overload]:
    """The overloads that any pattern matches, in their order; without a pattern all of them.

    `softmax`, `aten::softmax`, `softmax.int` and `_foreach_*` are patterns; one without an overload takes all
    overloads of the operator. Raises MpsmithError with near names for a pattern that matches nothing.
    """
    wanted = list(patterns)
    if not wanted:
        return list(overloads)
    chosen: set[str] = set()
    for pattern in wanted:
        matching = {overload.name for overload in overloads if _matches(overload, pattern)}
        if not matching:
            raise MpsmithError(f"no operator matches {pattern}{_suggestion(overloads, pattern)}")
        chosen |= matching
    return [overload for overload in overloads if overload.name in chosen]


def _matches(overload: Overload, pattern: str) -> bool:
    full = pattern if "::" in pattern else f"aten::{pattern}"
    return fnmatch.fnmatchcase(overload.name, full) or fnmatch.fnmatchcase(overload.operator, full)


def _suggestion(overloads: Sequence[Overload], pattern: str) -> str:
    names = sorted({overload.operator.removeprefix("aten::") for overload in overloads})
    plain = pattern.removeprefix("aten::").partition(".")[0]
    near = difflib.get_close_matches(plain, names, n=3, cutoff=0.6)
    return f"; did you mean {', '.join(near)}?" if near else "; `mpsmith surface` lists all operators"
