"""Recorded calls, which the CPU is known to accept. Imports torch."""

from __future__ import annotations

from functools import cache
from typing import Any

from ...audit.cases.calls.invocation import arguments_of
from ...audit.cases.calls.recorded_calls import RecordedCalls

# The dtypes that a generated kernel is instantiated for.
DTYPES = ("float32", "float16", "bfloat16")

KnownCall = tuple[str, tuple[Any, ...], dict[str, Any]]


@cache
def _recorded() -> RecordedCalls:
    return RecordedCalls.load()


def known_calls(name: str) -> list[KnownCall]:
    """Recorded calls of an overload, `aten::mode.values`, each with its dtype; empty if none is recorded."""
    recorded = _recorded().overloads.get(name)
    if recorded is None:
        return []
    dtypes = dict.fromkeys([*recorded.dtypes, *(call["dtype"] for call in recorded.calls)])
    return [(dtype, *arguments_of(call, dtype)) for dtype in dtypes for call in recorded.accepted(dtype)]
