"""Counts how the calls of each overload were computed."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field


@dataclass
class OverloadLaunches:
    """How the calls of an overload were computed.

    Attributes:
        launched: calls whose values came only from shipped kernels.
        stood_in: calls with the stand-in's values, by reason.
        kernels: launches by kernel name.
        neutral: calls that compute no values: they were refused, the result is empty, or bytes were copied.
    """

    launched: int = 0
    stood_in: dict[str, int] = field(default_factory=Counter)
    kernels: dict[str, int] = field(default_factory=Counter)
    neutral: int = 0


_counting = threading.Lock()
_counts: dict[str, OverloadLaunches] = {}


def drain() -> dict[str, OverloadLaunches]:
    """The counts since the last `drain`, by overload ("aten::add.Tensor"), in order of first call.

    Overloads without a planner are not listed; the device counts their calls.
    """
    global _counts
    with _counting:
        drained, _counts = _counts, {}
    return drained


def count_launched(overload: str, kernels: Iterable[str]) -> None:
    """Count a call of `overload` ("add.Tensor") that ran these kernels; with none it counts as neutral."""
    with _counting:
        counts = _of(overload)
        launched = False
        for kernel in kernels:
            counts.kernels[kernel] = counts.kernels.get(kernel, 0) + 1
            launched = True
        if launched:
            counts.launched += 1
        else:
            counts.neutral += 1


def count_stand_in(overload: str, reason: str) -> None:
    """Count a call that kept the stand-in's values."""
    with _counting:
        reasons = _of(overload).stood_in
        reasons[reason] = reasons.get(reason, 0) + 1


def _of(overload: str) -> OverloadLaunches:
    name = f"aten::{overload}"
    if name not in _counts:  # creating the default costs more than counting
        _counts[name] = OverloadLaunches()
    return _counts[name]
