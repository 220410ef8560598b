"""What something costs in processor time, of compilers and linkers too: others on the machine do not change it."""

from __future__ import annotations

import resource
import time
from collections.abc import Callable


def processor_seconds(function: Callable[[], object]) -> float:
    """Of one call, and of the processes that it starts."""

    def used() -> float:
        children = resource.getrusage(resource.RUSAGE_CHILDREN)
        return children.ru_utime + children.ru_stime + time.process_time()

    start = used()
    function()
    return used() - start


def microseconds(function: Callable[[], object], calls: int = 500, runs: int = 7) -> float:
    """Of one call in this thread, in the fastest run, after one that does not count."""
    function()
    times = []
    for _ in range(runs):
        start = time.thread_time()
        for _ in range(calls):
            function()
        times.append((time.thread_time() - start) / calls)
    return min(times) * 1e6
