"""Runs the probes, each as a task of its own in a worker process: one that aborts or hangs costs its own row."""

from __future__ import annotations

import importlib
import os
import time
from collections.abc import Callable, Sequence
from concurrent.futures import TimeoutError as FutureTimeout
from typing import TYPE_CHECKING

from pebble import ProcessExpired, ProcessPool

from ..findings.module_rows import ModuleRow, ModuleStatus
from ..findings.store import Run, Store

if TYPE_CHECKING:
    from .probes import Probed

# Seconds that one probe may take; the slowest compiles a kernel.
TIMEOUT = 60.0
LONGEST_DETAIL = 300
# How often to ask for a worker that replaces a dead one.
ROUNDS = 400


def probe_module(
    pool: ProcessPool,
    store: Store,
    run: Run,
    imports: Sequence[str],
    cause_of_death: Callable[[ProcessExpired], str],
    workers: int,
    timeout: float = TIMEOUT,
) -> None:
    """Probe every name that the store does not hold for this run yet, and store a row for each.

    Args:
        pool: worker processes in which the device is ready.
        store, run: where the rows go.
        imports: packages of the user; a list `mpsmith_module_probes` in one adds rows to the table.
        cause_of_death: puts into words why a worker died.
        workers: how many processes the pool has.
        timeout: seconds that one probe may take.
    """
    recorded = {row.name for row in store.module_rows(run.id)}
    try:
        names: list[str] = pool.schedule(listed, args=(tuple(imports),), timeout=timeout).result()
    except (ProcessExpired, FutureTimeout) as error:
        cause = cause_of_death(error) if isinstance(error, ProcessExpired) else f"not within {timeout:g} s"
        store.add_module_row(run.id, ModuleRow("torch.mps", ModuleStatus.FAILS, f"cannot be listed: {cause}"))
        return
    lost_worker = False
    for name in names:
        if name in recorded:
            continue
        future = pool.schedule(probed, args=(name, tuple(imports)), timeout=timeout)
        try:
            row = future.result()
        except ProcessExpired as expired:
            row = ModuleRow(name, ModuleStatus.FAILS, f"ends the process: {cause_of_death(expired)}")
            lost_worker = True
        except FutureTimeout:
            row = ModuleRow(name, ModuleStatus.FAILS, f"does not come back within {timeout:g} s")
            lost_worker = True
        store.add_module_row(run.id, row)
    if lost_worker:
        _await_successors(pool, workers)


def _await_successors(pool: ProcessPool, workers: int) -> None:
    """Wait until all workers answer again: one that is being started while its pool closes ends in a traceback."""
    for _ in range(ROUNDS):
        answers = [pool.schedule(answering) for _ in range(workers)]
        if len({answer.result() for answer in answers}) == workers:
            return


def answering() -> int:
    """The worker that answers, after a moment in which the others can answer too."""
    time.sleep(0.05)
    return os.getpid()


def listed(imports: tuple[str, ...]) -> list[str]:
    """The names of all rows: those of the table, then public names that no probe knows. Runs in a worker."""
    from .surface import public_names

    table = [row.name for row in _table(imports)]
    return [*table, *(name for name in public_names() if name not in table)]


def probed(name: str, imports: tuple[str, ...]) -> ModuleRow:
    """The row of one name. Runs in a worker."""
    from .probes import ProbeError
    from .surface import resolve

    found = next((row for row in _table(imports) if row.name == name), None)
    if found is None:
        return ModuleRow(name, ModuleStatus.NOT_PROBED, "new in this torch: no probe knows it")
    missing = [needed for needed in found.needs if resolve(needed) is None]
    if missing:
        return ModuleRow(name, ModuleStatus.MISSING, f"this torch has no {', '.join(missing)}")
    try:
        found.probe()
    except Exception as error:  # whatever it raises is what a user sees
        text = " ".join(str(error).split())
        kind = "" if isinstance(error, ProbeError) else f"{type(error).__name__}: "
        return ModuleRow(name, ModuleStatus.FAILS, f"{kind}{text}"[:LONGEST_DETAIL])
    return ModuleRow(name, ModuleStatus.WORKS)


def _table(imports: tuple[str, ...]) -> list[Probed]:
    from .probes import TABLE

    rows = list(TABLE)
    for package in imports:
        try:
            rows += getattr(importlib.import_module(package), "mpsmith_module_probes", ())
        except Exception:  # reported when the case sources were collected
            continue
    return rows
