"""Which items of work wait, which are out at which worker, and which are done. Knows neither Dask nor any clock.

An item may be out at several workers: where nothing waits any more, what a worker does not come back with is given to
another one too, and the first answer counts. The same rules run in `scale.py`, with simulated workers and time.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Sequence
from dataclasses import dataclass

# A batch should take about so many seconds: short beside an audit, long beside the way there and back. Towards the end
# batches are shorter, but each costs the coordinator as much as many cases.
BATCH_SECONDS = 8.0
SHORTEST_SECONDS = 0.75
MOST_ITEMS = 1024
# Until the first answer nobody knows how long an item takes.
FIRST_ITEMS = 4
# How much less a batch counts for the mean time of an item with each that comes after it.
NEWEST = 0.2
# An item that was out at so many workers that failed is given up.
STRIKES = 3
# So many times the mean time of an item is not late yet, whatever the patience.
LATE_FACTOR = 4.0


@dataclass
class Batch:
    """Items that are out at a worker since some time."""

    number: int
    worker: str
    items: tuple[int, ...]
    since: float


class Assignments:
    """The items of one phase of an audit.

    Args:
        items: the numbers of the items, in the order in which they are to be begun.
        patience: seconds after which a batch that has not come back is given to another worker too, if there is
            nothing else to do.
    """

    def __init__(self, items: Sequence[int], patience: float) -> None:
        self._waiting = deque(items)
        self._patience = patience
        self._open = set(items)
        self._out: dict[int, Batch] = {}
        self._held: Counter[str] = Counter()
        self._strikes: Counter[int] = Counter()
        self._numbers = 0
        self._seconds = self._items = 0.0  # of the newest batches, the older ones counting less

    @property
    def done(self) -> bool:
        """Whether nothing is left to do; late answers may still come."""
        return not self._open

    def held_by(self, worker: str) -> int:
        """How many batches a worker has."""
        return self._held[worker]

    def next_batch(self, worker: str, threads: int, now: float) -> Batch | None:
        """Something to do for a worker of a cluster with so many threads; None where there is nothing for it."""
        items = self._first_items(threads) or self._late_items(worker, now)
        if not items:
            return None
        self._numbers += 1
        batch = self._out[self._numbers] = Batch(self._numbers, worker, tuple(items), now)
        self._held[worker] += 1
        return batch

    def answered(self, number: int, items: Sequence[int], seconds: float) -> None:
        """A batch came back with these items done."""
        batch = self._back(number)
        self._open.difference_update(items)
        if items:
            self._seconds = (1 - NEWEST) * self._seconds + seconds
            self._items = (1 - NEWEST) * self._items + len(items)
        if batch is not None:
            self._again(set(batch.items).difference(items))

    def failed(self, number: int) -> Sequence[int]:
        """A batch will not come back; returns the items that have failed too often to be tried again."""
        batch = self._back(number)
        if batch is None:
            return []
        self._strikes.update(batch.items)
        self._again(set(batch.items))
        return [item for item in batch.items if item in self._open and self._strikes[item] >= STRIKES]

    def _back(self, number: int) -> Batch | None:
        batch = self._out.pop(number, None)
        if batch is not None:
            self._held[batch.worker] -= 1
        return batch

    def _again(self, items: set[int]) -> None:
        """Let items wait again that are neither done nor out somewhere else."""
        if not items & self._open:
            return
        elsewhere = {item for batch in self._out.values() for item in batch.items}
        self._waiting.extendleft(sorted((items & self._open) - elsewhere, reverse=True))

    def _first_items(self, threads: int) -> list[int]:
        """What waits and is to be begun next."""
        items: list[int] = []
        size = self._size(threads) if self._waiting else 0
        while self._waiting and len(items) < size:
            item = self._waiting.popleft()
            if item in self._open:  # else its late answer came while it waited again
                items.append(item)
        return items

    def _size(self, threads: int) -> int:
        """How many items the next batch takes: less towards the end, so that all end together.

        One alone where it was out at a worker that failed: it may be what the worker failed of.
        """
        if self._strikes[self._waiting[0]]:
            return 1
        share = -(-len(self._waiting) // (2 * max(threads, 1)))
        if not self._items:
            return max(1, min(FIRST_ITEMS, share))
        mean = max(self._mean, 1e-9)
        return max(1, min(round(BATCH_SECONDS / mean), max(share, round(SHORTEST_SECONDS / mean)), MOST_ITEMS))

    @property
    def _mean(self) -> float:
        """The seconds that an item takes: a batch of few, which began with a start, counts as few."""
        return self._seconds / self._items if self._items else 0.0

    def _late_items(self, worker: str, now: float) -> list[int]:
        """What another worker has had for too long, the longest first."""
        patience = max(self._patience, LATE_FACTOR * self._mean)
        oldest = next(iter(self._out.values()), None)
        if oldest is None or now - oldest.since < patience:
            return []
        mine = {item for batch in self._out.values() if batch.worker == worker for item in batch.items}
        newest: dict[int, float] = {}
        for batch in self._out.values():
            for item in batch.items:
                newest[item] = max(newest.get(item, batch.since), batch.since)
        for batch in self._out.values():
            late = [
                item
                for item in batch.items
                if item in self._open and item not in mine and now - newest[item] >= patience
            ]
            if late:
                return late
        return []
