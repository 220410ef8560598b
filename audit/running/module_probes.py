"""Runs the probes of torch.mps, each as a separate task in a worker: one that aborts or hangs loses only its row."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeVar

from pebble import ProcessExpired, ProcessPool

from ..store.records import ModuleRow, ModuleStatus, Run
from ..store.store import Store
from .mps_module.probing import listed, probed
from .worker_exit import at_risk, exit_of

Result = TypeVar("Result")

# Seconds of processor time that one probe may take; the slowest compiles a kernel.
TIMEOUT = 60.0
# How often to ask for a worker that replaces a dead one.
ROUNDS = 400


def probe_module(
    pool: ProcessPool,
    store: Store,
    run: Run,
    imports: Sequence[str],
    scratch: Path,
    workers: int,
    timeout: float = TIMEOUT,
) -> None:
    """Probe every name that this run has no row for yet, and store a row for each.

    Args:
        pool: worker processes in which the device is ready.
        store, run: where the rows are stored.
        imports: packages of the user; a list `mpsmith_module_probes` in one adds rows to the table.
        scratch: the folder with the workers' logs.
        workers: how many processes the pool has.
        timeout: seconds of processor time that one probe may take.
    """
    recorded = {row.name for row in store.module_rows(run.id)}
    packages = tuple(imports)
    try:
        names: list[str] = pool.schedule(_at_risk, args=(timeout, listed, packages)).result()
    except ProcessExpired as expired:
        detail = f"cannot be listed: {exit_of(expired, scratch)}"
        store.add_module_row(run.id, ModuleRow("torch.mps", ModuleStatus.FAILS, detail))
        return
    lost_worker = False
    for name in names:
        if name in recorded:
            continue
        try:
            row: ModuleRow = pool.schedule(_at_risk, args=(timeout, probed, name, packages)).result()
        except ProcessExpired as expired:
            worker_exit = exit_of(expired, scratch)
            detail = "does not come back in time" if worker_exit.timed_out else f"ends the process: {worker_exit}"
            row = ModuleRow(name, ModuleStatus.FAILS, detail)
            lost_worker = True
        store.add_module_row(run.id, row)
    if lost_worker:
        _await_successors(pool, workers)


def _at_risk(seconds: float, work: Callable[..., Result], *arguments: object) -> Result:
    with at_risk(seconds):
        return work(*arguments)


def _await_successors(pool: ProcessPool, workers: int) -> None:
    """Wait until all workers answer: a worker that is starting while its pool closes would print a traceback."""
    for _ in range(ROUNDS):
        answers = [pool.schedule(answering) for _ in range(workers)]
        if len({answer.result() for answer in answers}) == workers:
            return


def answering() -> int:
    """Return this worker's pid, after a moment in which the other workers can answer, too."""
    time.sleep(0.05)
    return os.getpid()
