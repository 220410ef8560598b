"""Pools of worker processes, which start without torch and end with their parent."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from multiprocessing import get_context
from typing import Any

from pebble import ProcessPool

from ..model.hash_seed import same_hashes


@contextmanager
def worker_processes(
    count: int, start: Callable[[Any], None], options: Any, tasks_each: int = 0
) -> Iterator[ProcessPool]:
    """A pool of processes that first call `start(options)`. An exception in the context stops them at once.

    A process is replaced after `tasks_each` tasks; 0 for no limit.
    """
    pool = ProcessPool(
        max_workers=count,
        max_tasks=tasks_each,
        initializer=start,
        initargs=(options,),
        context=get_context("spawn"),  # torch must load after the fallback variable is set
    )
    with same_hashes():
        try:
            yield pool
            pool.close()
        except BaseException:
            pool.stop()
            raise
        finally:
            pool.join()
