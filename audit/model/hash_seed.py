"""Fixes the hash seed, so that sets have the same order in every process that makes cases.

Some of PyTorch's samplers loop over sets of strings (meshgrid's over its two values of `indexing`), and Python gives
each process a different order. A case is identified by its position, so the order must be fixed.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

VARIABLE = "PYTHONHASHSEED"
SEED = "0"


@contextmanager
def same_hashes() -> Iterator[None]:
    """Processes that are started inside hash strings alike, on every machine; this process is not changed."""
    before = os.environ.get(VARIABLE)
    os.environ[VARIABLE] = SEED
    try:
        yield
    finally:
        if before is None:
            del os.environ[VARIABLE]
        else:
            os.environ[VARIABLE] = before
