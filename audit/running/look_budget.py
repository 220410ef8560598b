"""How many cases that came out wrong are looked into, so that an operator which is wrong everywhere costs little."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

from ..findings.alike import alike
from ..verdicts import Outcome

# Of the cases of a group that say the same but for numbers, the first few are looked into.
MOST_OF_A_KIND = 3
# Seconds of processor time that a worker may spend so in an audit. What it does not look into any more is put down by
# what was found until then.
MOST_SECONDS = 60.0


class LookBudget:
    """What one worker has spent on looking into cases."""

    def __init__(self, seconds: float = MOST_SECONDS) -> None:
        self._left = seconds
        self._group = -1
        self._looked: Counter[tuple[str, str]] = Counter()

    def allows(self, group: int, outcome: Outcome) -> bool:
        """Whether this case is to be looked into; it then counts. Groups come one after the other."""
        if group != self._group:
            self._group = group
            self._looked.clear()
        kind = alike(outcome)
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
