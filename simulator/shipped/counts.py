"""What became of the calls of each overload, counted for whoever audits this process."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field


@dataclass
class OverloadLaunches:
    """What became of an overload's calls.

    Attributes:
        launched: calls whose values came from shipped kernels alone.
        stood_in: calls whose values are the stand-in's, by the reason.
        kernels: launches by the kernel's name.
        neutral: calls that compute no values: they were refused, the result is empty, or bytes were copied as they are.
    """

    launched: int = 0
    stood_in: dict[str, int] = field(default_factory=Counter)
    kernels: dict[str, int] = field(default_factory=Counter)
    neutral: int = 0


_counting = threading.Lock()
_counts: dict[str, OverloadLaunches] = {}


def drain() -> dict[str, OverloadLaunches]:
    """What became of the calls since the last `drain`, by overload ("aten::add.Tensor"), in order of first call.

    An overload without a planner is not listed: its calls are in the device's own counters alone.
    """
    global _counts
    with _counting:
        drained, _counts = _counts, {}
    return drained


def count_launched(overload: str, kernels: Iterable[str]) -> None:
    """A call of `overload` ("add.Tensor") took these kernels, or none where it only moved bytes."""
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


def count_stood_in(overload: str, reason: str) -> None:
    """A call kept the stand-in's values."""
    with _counting:
        reasons = _of(overload).stood_in
        reasons[reason] = reasons.get(reason, 0) + 1


def _of(overload: str) -> OverloadLaunches:
    return _counts.setdefault(f"aten::{overload}", OverloadLaunches())
