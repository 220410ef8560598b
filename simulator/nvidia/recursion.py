"""Finds recursive functions in PTX, whose stack size the driver does not know."""

from __future__ import annotations

import re

_FUNCTION = re.compile(r"^\s*(?:\.\w+ )*\.(?:func|entry)\b(?:\s*\([^)]*\))?\s+(?P<name>[\w$]+)", re.MULTILINE)
_CALL = re.compile(r"\bcall(?:\.uni)?\s+(?:\([^)]*\),\s*)?(?P<name>[\w$]+)")


def is_recursive(ptx: str) -> bool:
    """Whether a function of a module calls itself directly."""
    begins = list(_FUNCTION.finditer(ptx))
    ends = [*(match.start() for match in begins[1:]), len(ptx)]
    return any(
        any(call["name"] == begin["name"] for call in _CALL.finditer(ptx, begin.end(), end))
        for begin, end in zip(begins, ends, strict=True)
    )
