"""Pauses the kernels that replace the stand-ins of the simulated device: calls run the stand-ins."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

_paused = 0


def is_paused() -> bool:
    """Whether calls run the stand-ins, uncounted."""
    return _paused > 0


@contextmanager
def paused() -> Iterator[None]:
    """A context in which all calls of this process run the stand-ins; it may be nested."""
    global _paused
    _paused += 1
    try:
        yield
    finally:
        _paused -= 1
