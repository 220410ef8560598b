"""Observes operators in a separate process: some CPU kernels crash when called with generated arguments."""

from __future__ import annotations

import atexit
import functools
import multiprocessing
from concurrent.futures import TimeoutError as TookTooLong

from pebble import ProcessExpired, ProcessPool

from .model import OperatorModel
from .observation import Observation
from .observing import observed

_SECONDS = 120.0


def observations_of(operator: OperatorModel) -> dict[str, Observation]:
    """The observation of each overload that gets a kernel, except those whose calls crash the process or hang."""
    observations = {overload.name: _observe_in_subprocess(overload.name) for overload in operator.kernels}
    return {name: observation for name, observation in observations.items() if observation is not None}


@functools.cache
def _observe_in_subprocess(name: str) -> Observation | None:
    try:
        observation: Observation | None = _pool().schedule(observed, args=[name], timeout=_SECONDS).result()
    except (ProcessExpired, TookTooLong):
        return None
    return observation


@functools.cache
def _pool() -> ProcessPool:
    """A pool of one process, shared by all operators; pebble replaces the process if it crashes."""
    pool = ProcessPool(max_workers=1, context=multiprocessing.get_context("spawn"))

    def end() -> None:
        pool.stop()
        pool.join()

    atexit.register(end)
    return pool
