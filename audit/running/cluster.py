"""An audit on the workers of a Dask scheduler, which distributes the tasks, retries them and returns the rows.

This machine needs neither torch nor a device. A worker makes the cases itself, from the names of groups.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING

from ...errors import MpsmithError, one_line
from ..model.group import GroupKey
from ..model.selection import Settings
from ..store.records import Run, StoredGroup
from ..store.store import Store
from .cluster_task import ClusterError, TaskAnswer, TaskRequest, Work, code_fingerprint, device_of, difference, perform
from .progress import ProgressListener
from .runner import as_recorded, audit_into, exclusive, resumable
from .worker_tasks import AuditPlan

if TYPE_CHECKING:
    from distributed import Client, Future

# Groups that a worker executes in one process: each process loads torch first, and what it did is lost with it.
LARGEST_BATCH = 500
# How often Dask gives a task that failed to a worker again.
RETRIES = 2
SECONDS_FOR_WORKERS = 30


class StoppedError(ClusterError):
    """The cluster failed after the audit had begun: `--resume` continues it."""


def audit_on_cluster(settings: Settings, path: Path, address: str, *, resume: bool, say: Callable[[str], None]) -> Run:
    """Run an audit on the workers of the Dask scheduler at `address`, into the store at `path`.

    Args:
        settings: the settings of the audit; its number of workers is not used.
        path: the store.
        address: a Dask address: tcp://host:8786, or tls:// with its configuration.
        resume: continue an audit that was stopped, on a cluster or on this machine.
        say: prints a line of progress.

    Raises:
        StoreError: the store cannot be used, or another audit is writing to it.
        MpsmithError: as `run_audit` does; also if the cluster cannot be used or disappears.
        KeyboardInterrupt: stopped by the user; everything that had finished is in the store.
    """
    with exclusive(path), Store.open_or_create(path) as store, connected(address) as client:
        unfinished = resumable(store) if resume else None
        if unfinished is not None:
            settings = as_recorded(unfinished, settings)
        execution = ClusterExecution(store, client, settings)
        return audit_into(store, settings, unfinished, say, lambda *_: nullcontext(execution))


@contextmanager
def connected(address: str, timeout: float = SECONDS_FOR_WORKERS) -> Iterator[Client]:
    """A connection to a scheduler that has a worker. Raises ClusterError if there is none within the time limit."""
    try:
        from distributed import Client
    except ModuleNotFoundError as missing:
        raise ClusterError("audits on a cluster need Dask distributed: pip install 'mpsmith[cluster]'") from missing
    try:
        client = Client(address, timeout=timeout, set_as_default=False, name="mpsmith")
    except (OSError, ValueError, TypeError, RuntimeError) as error:
        raise ClusterError(
            f"no Dask scheduler at {address}: {one_line(error)} (start one with `dask scheduler`)"
        ) from error
    try:
        try:
            client.wait_for_workers(1, timeout=timeout)
        except (TimeoutError, asyncio.TimeoutError) as error:  # two classes in Python 3.10
            raise ClusterError(
                f"the Dask scheduler at {address} has no worker (start one: dask worker {address})"
            ) from error
        yield client
    finally:
        client.close(timeout=2)


class ClusterExecution:
    """Executes the groups of one run on the workers of a scheduler.

    Args:
        store: receives the rows of each group at once.
        client: connected to the scheduler.
        settings: the settings of the audit.
    """

    def __init__(self, store: Store, client: Client, settings: Settings) -> None:
        self._store = store
        self._client = client
        self._settings = settings
        self._code = code_fingerprint()
        self._device: Mapping[str, str] | None = None
        self._crashing: dict[str, None] = {}

    def plan(self) -> AuditPlan:
        """The plan of groups to execute, made by one of the workers."""
        plan = self._answer(self._submitted(Work(), retries=0)).plan
        assert plan is not None
        return plan

    def probe_module(self, run: Run) -> None:
        """Probe torch.mps itself on one of the workers."""
        recorded = tuple(row.name for row in self._store.module_rows(run.id))
        for row in self._answer(self._submitted(Work(probed=recorded))).module:
            self._store.add_module_row(run.id, row)

    def execute(
        self, groups: Sequence[StoredGroup], positions: Mapping[GroupKey, frozenset[int]], progress: ProgressListener
    ) -> None:
        """Execute groups on the workers. Each is done as soon as its rows are in the store."""
        from distributed import as_completed

        size = max(1, min(LARGEST_BATCH, len(groups) // (4 * self._threads())))
        waiting = [groups[at : at + size] for at in range(0, len(groups), size)][::-1]
        running: dict[Future, Sequence[StoredGroup]] = {}
        completed = as_completed(loop=self._client.loop)
        try:
            while waiting or running:
                while waiting and len(running) < 2 * self._threads():
                    batch = waiting.pop()
                    work = tuple((group.key, positions.get(group.key)) for group in batch)
                    future = self._submitted(Work(work, crashing=tuple(self._crashing)))
                    running[future] = batch
                    completed.add(future)
                future = next(completed)
                self._take(running.pop(future), self._answer(future), progress)
        finally:
            self._client.cancel(list(running))

    def _take(self, batch: Sequence[StoredGroup], answer: TaskAnswer, progress: ProgressListener) -> None:
        self._crashing |= dict.fromkeys(answer.crashing)
        rows = {group.id: rows for group, rows in zip(batch, answer.groups, strict=True)}
        for added in self._store.add_rows(list(rows.items())):
            progress.advance(rows[added].cases)

    def _threads(self) -> int:
        threads: dict[str, int] = self._client.nthreads()
        return max(1, sum(threads.values()))

    def _submitted(self, work: Work, retries: int = RETRIES) -> Future:
        settings = self._settings
        request = TaskRequest(settings.recorded(), settings.timeout, settings.memory_limit, self._code, work)
        return self._client.submit(perform, request, pure=False, retries=retries)

    def _answer(self, future: Future) -> TaskAnswer:
        """The answer to a request. Raises StoppedError if there is none, or if the device is of a different kind."""
        try:
            answer: TaskAnswer = future.result()
        except MpsmithError as error:
            raise StoppedError(one_line(error)) from error
        except Exception as error:  # Dask's own: the worker was killed several times, the scheduler is gone
            raise StoppedError(f"the cluster gives no answer: {type(error).__name__}: {one_line(error)}") from error
        device = device_of(answer.environment)
        self._device = self._device or device
        if differs := difference(device, self._device):
            raise StoppedError(f"a worker has {differs}: connect workers of one kind")
        return answer
