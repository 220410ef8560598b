"""Limits how many failed cases are run again to find the inner call at fault."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from ..model.group import GroupKey
from ..model.verdicts import CaseVerdict, Outcome

# Of the cases of a group with the same symptom, only the first few are run again.
MOST_OF_A_KIND = 3
# Seconds of processor time that a worker may spend on this in an audit. Later cases are attributed by earlier ones.
MOST_SECONDS = 60.0
# A rerun of a crashed case ends another worker: limits for an entry and a verdict, and for an audit. The rerun of a
# time-out takes as long as the time-out.
MOST_CRASHES_OF_AN_ENTRY = 2
MOST_CRASHES = {CaseVerdict.CRASH: 16, CaseVerdict.TIMEOUT: 4}


class AttributionBudget:
    """The time that one worker has spent on reruns."""

    def __init__(self, seconds: float = MOST_SECONDS) -> None:
        self._left = seconds
        self._group = -1
        self._looked: Counter[tuple[object, ...]] = Counter()

    def allows(self, group: int, outcome: Outcome, kernels: Sequence[str] = ()) -> bool:
        """Whether to run this case again; it then counts. Groups come one after the other.

        With `kernels`, cases that launched other kernels have another symptom.
        """
        if group != self._group:
            self._group = group
            self._looked.clear()
        kind = (outcome.symptom, *kernels)
        self._looked[kind] += 1
        return self._left > 0 and self._looked[kind] <= MOST_OF_A_KIND

    @contextmanager
    def spending(self) -> Iterator[None]:
        """Count the processor time of the enclosed rerun."""
        start = time.process_time()
        try:
            yield
        finally:
            self._left -= time.process_time() - start


class CrashBudget:
    """The number of reruns of crashed cases in an audit."""

    def __init__(self) -> None:
        self._of_entry: Counter[tuple[str, str, str, CaseVerdict]] = Counter()
        self._of_verdict: Counter[CaseVerdict] = Counter()

    def allows(self, key: GroupKey, verdict: CaseVerdict) -> bool:
        """Whether to run a crashed case of this group again; it then counts."""
        entry = (key.source, key.operator, key.variant, verdict)
        if self._of_verdict[verdict] >= MOST_CRASHES[verdict] or self._of_entry[entry] >= MOST_CRASHES_OF_AN_ENTRY:
            return False
        self._of_entry[entry] += 1
        self._of_verdict[verdict] += 1
        return True
