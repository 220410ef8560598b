"""Limits the memory of a worker process, and ends it with its parent."""

from __future__ import annotations

import os
import resource
import time


def end_with_parent(parent: int) -> None:
    """Wait, in a thread, until the parent is gone, and end: a worker without one would wait for tasks for ever."""
    while os.getppid() == parent:
        time.sleep(0.5)
    os._exit(3)


def limit_memory(limit: int) -> None:
    """Let allocations beyond the limit fail instead of filling the machine (Linux; macOS does not enforce this)."""
    if limit:
        _, hard = resource.getrlimit(resource.RLIMIT_DATA)
        resource.setrlimit(resource.RLIMIT_DATA, (limit, hard))
