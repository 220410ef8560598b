"""Rows of a worker that are not in the store yet. They are written together, because commits are expensive."""

from __future__ import annotations

import time
from collections.abc import Callable

from ..store.store import Store

# Seconds after which the next row writes all of them. Rows that are lost with a worker are executed again.
LONGEST_WAIT = 0.2


class PendingRows:
    """The rows to write next.

    A worker that ends loses its pending rows, and their cases are executed again. A rerun may end the worker and needs
    its case in the store, so they must be written before it.

    Args:
        store: where the rows are written.
        before_writing: called first; ends the process if its rows are not reliable.
    """

    def __init__(self, store: Store, before_writing: Callable[[], None] = lambda: None) -> None:
        self._store = store
        self._before_writing = before_writing
        self._writes: list[Callable[[], None]] = []
        self._since = 0.0

    def add(self, write: Callable[[], None]) -> None:
        """Add a call of a method of the store. After some time, write all pending rows."""
        if not self._writes:
            self._since = time.monotonic()
        self._writes.append(write)
        if time.monotonic() - self._since > LONGEST_WAIT:
            self.write()

    def write(self) -> None:
        """Write all pending rows in one transaction. Raises StoreError; even then, none is pending afterwards."""
        if self._writes:
            self._before_writing()
        writes, self._writes = self._writes, []
        if writes:
            with self._store.transaction():
                for write in writes:
                    write()
