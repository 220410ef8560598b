"""Pools of worker processes, which begin without torch and end with their parent."""

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
    """So many processes that call `start(options)` first; stopped at once when the context is left by an exception.

    A process ends after `tasks_each` tasks, and another takes its place; 0 for no limit.
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
