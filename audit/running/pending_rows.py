"""Rows of a worker that are not in the store yet: written together, since a commit costs more than the rows."""

from __future__ import annotations

import time
from collections.abc import Callable

from ..store.store import Store

# Seconds after which the next row brings all of them to be written: what is lost with a worker is executed again.
LONGEST_WAIT = 0.2


class PendingRows:
    """What is to be recorded next.

    A worker that dies takes its pending rows along. Nothing is lost by that, for a case that is not in the store is
    executed again; but before anything that a recorded case alone explains, a look inside it, they are to be written.

    Args:
        store: where they go.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._writes: list[Callable[[], None]] = []
        self._since = 0.0

    def add(self, write: Callable[[], None]) -> None:
        """Let `write`, a call of the store's, be made with the others."""
        if not self._writes:
            self._since = time.monotonic()
        self._writes.append(write)
        if time.monotonic() - self._since > LONGEST_WAIT:
            self.write()

    def write(self) -> None:
        """Record all of them in one transaction. Raises StoreError; they are not pending afterwards."""
        writes, self._writes = self._writes, []
        if writes:
            with self._store.transaction():
                for write in writes:
                    write()
