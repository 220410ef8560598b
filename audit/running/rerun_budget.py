"""How many cases that broke are looked into, so that an operator which is broken everywhere costs little."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from ..model.group import GroupKey
from ..model.verdicts import CaseVerdict, Outcome

# Of the cases of a group that say the same but for numbers, the first few are looked into.
MOST_OF_A_KIND = 3
# Seconds of processor time that a worker may spend so in an audit. What it does not look into any more is put down by
# what was found until then.
MOST_SECONDS = 60.0
# What killed its worker kills another one: so many cases of an entry and a verdict, and of an audit. A time-out takes
# as long again.
MOST_CRASHES_OF_AN_ENTRY = 2
MOST_CRASHES = {CaseVerdict.CRASH: 16, CaseVerdict.TIMEOUT: 4}


class AttributionBudget:
    """What one worker has spent on looking into cases."""

    def __init__(self, seconds: float = MOST_SECONDS) -> None:
        self._left = seconds
        self._group = -1
        self._looked: Counter[tuple[object, ...]] = Counter()

    def allows(self, group: int, outcome: Outcome, kernels: Sequence[str] = ()) -> bool:
        """Whether this case is to be looked into; it then counts. Groups come one after the other.

        With `kernels`, cases that launched others are of another kind.
        """
        if group != self._group:
            self._group = group
            self._looked.clear()
        kind = (outcome.symptom, *kernels)
        self._looked[kind] += 1
        return self._left > 0 and self._looked[kind] <= MOST_OF_A_KIND

    @contextmanager
    def spending(self) -> Iterator[None]:
        """Around a look: its processor time is spent."""
        start = time.process_time()
        try:
            yield
        finally:
            self._left -= time.process_time() - start


class CrashBudget:
    """What an audit has spent on running cases again that killed their workers."""

    def __init__(self) -> None:
        self._of_entry: Counter[tuple[str, str, str, CaseVerdict]] = Counter()
        self._of_verdict: Counter[CaseVerdict] = Counter()

    def allows(self, key: GroupKey, verdict: CaseVerdict) -> bool:
        """Whether a case of this group that ended so is to be run again; it then counts."""
        entry = (key.source, key.operator, key.variant, verdict)
        if self._of_verdict[verdict] >= MOST_CRASHES[verdict] or self._of_entry[entry] >= MOST_CRASHES_OF_AN_ENTRY:
            return False
        self._of_entry[entry] += 1
        self._of_verdict[verdict] += 1
        return True
