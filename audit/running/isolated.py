"""Executes groups of cases in worker processes of this machine, and continues when a worker crashes or hangs."""

from __future__ import annotations

import os
import tempfile
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from pebble import ProcessExpired, ProcessPool

from ...errors import MpsmithError
from ..model.group import COMPILED_MODES, GroupKey
from ..model.out_of_range import may_write_out_of_range
from ..model.selection import Settings
from ..model.verdicts import CaseVerdict, Grade, Outcome
from ..shipped.kernels import kernel_that_ran, record_crashing_kernel, record_slow_case
from ..store.records import STRICT, Run, StoredGroup
from ..store.store import Store
from . import last_call, worker
from .device_health import RECYCLED, fault_in
from .module_probes import probe_module
from .progress import ProgressListener
from .rerun_budget import CrashBudget
from .worker_exit import DEVICE_LOST, WorkerExit, exit_of
from .worker_processes import worker_processes
from .worker_setup import start
from .worker_tasks import MAKING_SAMPLES, ON_DEVICE, RERUN, AuditPlan, Task, WorkerOptions, announced_case

# The groups that go to a worker together: so many, or fewer towards the end, so that no worker waits for another.
LARGEST_BATCH = 8
Batch = tuple[Task, ...]

# A group is given up after this many exits of its worker without a new case.
STRIKES = 3


@contextmanager
def isolated(settings: Settings, store: Store) -> Iterator[IsolatedExecution]:
    """Worker processes that write into `store`; the settings say how many."""
    with scratch_folder() as scratch, IsolatedExecution(settings, store, scratch) as execution:
        yield execution


class IsolatedExecution:
    """The worker processes of one audit on this machine.

    Args:
        settings: the settings of the audit.
        store: receives the workers' rows.
        scratch: the folder for marker files and the workers' output.
    """

    def __init__(self, settings: Settings, store: Store, scratch: Path) -> None:
        self._settings = settings
        self._store = store
        self._scratch = scratch
        self._crash_budget = CrashBudget()
        self._processes: AbstractContextManager[ProcessPool] | None = None
        self._pool: ProcessPool | None = None
        self._strict = False
        self._real = False

    def __enter__(self) -> IsolatedExecution:
        return self

    def __exit__(self, *exc_info: Any) -> None:
        processes, self._processes, self._pool = self._processes, None, None
        if processes is not None:
            processes.__exit__(*exc_info)

    def _end_processes(self) -> None:
        self.__exit__(None, None, None)

    def _pool_of(self, mode: str) -> ProcessPool:
        """The workers for a mode. libtorch reads the fallback variable once: strict mode needs separate processes."""
        strict = mode == STRICT
        if self._pool is None or self._strict != strict:
            self._end_processes()
            self._processes = worker_pool(self._settings, mode, self._store.path, self._scratch)
            self._pool, self._strict = self._processes.__enter__(), strict
        return self._pool

    def environment(self) -> dict[str, Any]:
        """Facts about this machine that the results depend on. Raises MpsmithError if no worker can start."""
        environment: dict[str, Any] = self._pool_of("fallback").schedule(worker.audited_environment).result()
        self._real = not environment["simulated"]
        return environment

    def plan(self) -> AuditPlan:
        """The plan of groups to execute. Raises MpsmithError if nothing is selected, or no worker can start."""
        planned: AuditPlan = self._pool_of("fallback").schedule(worker.plan).result()
        self._real = not planned.environment["simulated"]
        return planned

    def probe_module(self, run: Run) -> None:
        """Probe torch.mps itself, name by name, and store a row for each."""
        settings = self._settings
        pool = self._pool_of("fallback")
        probe_module(pool, self._store, run, settings.imports, self._scratch, settings.workers)

    def execute(
        self, groups: Sequence[StoredGroup], positions: Mapping[GroupKey, frozenset[int]], progress: ProgressListener
    ) -> None:
        """Execute groups of one mode and mark them as done; for those in `positions`, only these cases.

        On a real device, groups that may write out of bounds come last. Before them, cases that were wrong or ran out
        of memory are judged again. Both kinds run each group in a separate process.
        """
        if not self._real:
            self._run(self._pool_of(groups[0].key.mode), groups, positions, progress)
            return
        dangerous = [group for group in groups if may_write_out_of_range(group.key)]
        others = [group for group in groups if not may_write_out_of_range(group.key)]
        if others:
            self._run(self._pool_of(groups[0].key.mode), others, positions, progress)
        again = self._store.reopen([group.id for group in others])
        reopened = [group for group in others if group.id in again]
        self._run_each_alone(reopened, {group.key: again[group.id] for group in reopened}, NoProgress())
        self._run_each_alone(dangerous, positions, progress)

    def _run_each_alone(
        self, groups: Sequence[StoredGroup], positions: Mapping[GroupKey, frozenset[int]], progress: ProgressListener
    ) -> None:
        if not groups:
            return
        self._end_processes()  # they hold memory of the device
        with self._fresh_processes(groups[0].key.mode) as pool:
            self._run(pool, groups, positions, progress, largest_batch=1)

    def _fresh_processes(self, mode: str, workers: int | None = None) -> AbstractContextManager[ProcessPool]:
        """Processes that each execute one task; the settings say how many run at a time."""
        settings = replace(self._settings, workers=workers or self._settings.workers)
        return worker_pool(settings, mode, self._store.path, self._scratch, tasks_each=1)

    def _run(
        self,
        pool: ProcessPool,
        groups: Sequence[StoredGroup],
        positions: Mapping[GroupKey, frozenset[int]],
        progress: ProgressListener,
        largest_batch: int = LARGEST_BATCH,
    ) -> None:
        waiting = deque(groups)
        running: dict[Future[list[int]], Batch] = {}
        strikes: dict[int, int] = {}
        while True:
            self._fill(pool, waiting, running, positions, largest_batch)
            if not running:
                return
            done, _ = wait(running, return_when=FIRST_COMPLETED)
            for future in done:
                batch = running.pop(future)
                try:
                    for executed in future.result():
                        progress.advance(executed)
                except ProcessExpired as expired:
                    if left := self._after_exit(pool, batch, expired, strikes, progress):
                        running[pool.schedule(worker.run_groups, args=(left,))] = left

    def _fill(
        self,
        pool: ProcessPool,
        waiting: deque[StoredGroup],
        running: dict[Future[list[int]], Batch],
        positions: Mapping[GroupKey, frozenset[int]],
        largest_batch: int,
    ) -> None:
        """Schedule a few batches ahead of the workers; more would only cost memory."""
        while waiting and len(running) < 2 * self._settings.workers:
            compiled = waiting[0].key.mode in COMPILED_MODES  # where handing over a group costs nothing beside it
            size = 1 if compiled else size_of_batch(len(waiting), self._settings.workers, largest_batch)
            groups = [waiting.popleft() for _ in range(size)]
            marker = self._scratch / f"{groups[0].id}.marker"
            batch = tuple(Task(g.id, g.key, marker, positions.get(g.key)) for g in groups)
            running[pool.schedule(worker.run_groups, args=(batch,))] = batch

    def _after_exit(
        self,
        pool: ProcessPool,
        batch: Batch,
        expired: ProcessExpired,
        strikes: dict[int, int],
        progress: ProgressListener,
    ) -> Batch:
        """Record the case that ended a worker; return the rest of its batch."""
        left = list(batch)
        while left and self._store.is_done(left[0].group):
            progress.advance(len(self._store.positions(left.pop(0).group)))
        if not left or expired.exitcode == RECYCLED:
            return tuple(left)
        if expired.exitcode == DEVICE_LOST:
            return (self._rerun_after_lost_device(left[0], expired), *left[1:])
        task = left[0]
        strikes[task.group] = strikes.get(task.group, 0) + 1
        again = self._record_exit(pool, task, expired, strikes[task.group])
        progress.advance(1, group_done=not again, crashed=True)
        return tuple(left if again else left[1:])

    def _rerun_after_lost_device(self, task: Task, expired: ProcessExpired) -> Task:
        """The rest of a group whose worker lost its device; each case's row is now written at once, to find the fault.

        That case is judged alone in a new process. If the device is lost there, too, the case is a crash.
        """
        announced = announced_case(task)
        task.marker.unlink(missing_ok=True)
        if (
            not task.cautious
            or announced is None
            or announced[0] in (MAKING_SAMPLES, *self._store.positions(task.group))
        ):
            return replace(task, cautious=True)
        self._judge_alone(task, announced[0])
        return task

    def _judge_alone(self, task: Task, position: int) -> None:
        """Judge a case in a new process that does nothing else, and store its row: a crash if that process ends."""
        alone = replace(task, positions=frozenset({position}), cautious=True, ends_group=False)
        with self._fresh_processes(task.key.mode, workers=1) as pool:
            try:
                pool.schedule(worker.run_groups, args=((alone,),)).result()
            except ProcessExpired as expired:
                if expired.exitcode != RECYCLED and announced_case(task) is None:
                    raise MpsmithError(
                        f"{task.key.label}:{position}: the mps device does not compute in a new process, "
                        f"{exit_of(expired, self._scratch)} (restart the Mac, then continue with --resume; if this "
                        "repeats, the case hangs the device)"
                    ) from None
                task.marker.unlink(missing_ok=True)
                if position not in self._store.positions(task.group) and expired.exitcode != RECYCLED:
                    self._store.add_case(task.group, position, _crash(exit_of(expired, self._scratch)), "")

    def _record_exit(self, pool: ProcessPool, task: Task, expired: ProcessExpired, strike: int) -> bool:
        """Record the case that ended its worker; return whether the group's other cases still have to run."""
        announced = announced_case(task)
        task.marker.unlink(missing_ok=True)
        ended = exit_of(expired, self._scratch)
        kernel = kernel_that_ran(self._scratch, expired.pid)
        if kernel:
            if ended.timed_out and announced is not None and announced[1] == ON_DEVICE:
                record_slow_case(self._scratch, task.group, announced[0], kernel)
                return True  # the case is run again, with the CPU's kernels
            record_crashing_kernel(self._scratch, kernel)
            ended = replace(ended, cause=f"{ended.cause} in the shipped kernel {kernel}")
        if announced is not None and announced[1] == RERUN:  # the case itself is recorded, not what the run would show
            self._store.add_note(task.group, announced[0], f"running it again ends in {ended}", verdict=None)
            return True
        if announced is not None and announced[0] not in self._store.positions(task.group):
            return self._record_case(pool, task, announced, ended, kernel)
        if strike >= STRIKES:
            raise MpsmithError(f"{task.key.label}: the worker dies before its first case, {ended} (run --resume later)")
        return True

    def _record_case(
        self, pool: ProcessPool, task: Task, announced: tuple[int, int], ended: WorkerExit, kernel: str
    ) -> bool:
        """Record the outcome of an announced case; return whether the group's other cases still have to run."""
        position, stage = announced
        if self._real and stage == ON_DEVICE:
            self._judge_alone(task, position)
            return True
        if position == MAKING_SAMPLES:
            outcome = Outcome(CaseVerdict.REFERENCE_FAILED, "samples", f"making the samples ends in {ended}")
            self._store.add_case(task.group, position, outcome, "")
            self._store.mark_done(task.group)
            return False
        if stage == ON_DEVICE:
            verdict = CaseVerdict.TIMEOUT if ended.timed_out else CaseVerdict.CRASH
            outcome = Outcome(verdict, "forward", ended.cause)
        else:
            outcome = Outcome(CaseVerdict.REFERENCE_FAILED, "forward", f"the CPU's run ends in {ended}")
        self._store.add_case(task.group, position, outcome, "", Grade.SHIPPED_KERNEL if kernel else None)
        if kernel:
            self._store.add_case_kernels(task.group, position, [kernel])
        if self._is_attributed(task, outcome.verdict):
            self._attribute_crash(pool, replace(task, positions=frozenset({position})), position)
        return True

    def _is_attributed(self, task: Task, verdict: CaseVerdict) -> bool:
        """Whether to look for the inner call that ended a case."""
        if not verdict.executed or task.key.mode in COMPILED_MODES:
            return False
        if verdict is CaseVerdict.TIMEOUT and self._settings.host_code:
            return False  # this machine executes the kernels slowly, and would take as long again
        return self._crash_budget.allows(task.key, verdict)

    def _attribute_crash(self, pool: ProcessPool, task: Task, position: int) -> None:
        """Run the case again in another worker, and record which inner call ends it."""
        try:
            pool.schedule(worker.rerun_crashed_case, args=(task,)).result()
        except ProcessExpired as expired:
            at_fault = last_call.read(last_call.path_of(task.marker), exit_of(expired, self._scratch))
            self._store.add_inner_fault(task.group, position, at_fault)


def _crash(ended: WorkerExit) -> Outcome:
    """The outcome of a case that ended a process in which nothing else ran."""
    if ended.timed_out:
        return Outcome(CaseVerdict.TIMEOUT, "forward", ended.cause)
    fault = fault_in(ended.cause)
    return Outcome(CaseVerdict.CRASH, "forward", f"{fault}: {ended.cause}" if fault else ended.cause)


class NoProgress:
    """Ignores progress: the cases have been counted already."""

    def advance(self, cases: int, *, group_done: bool = True, crashed: bool = False) -> None:
        """Count nothing."""


def size_of_batch(waiting: int, workers: int, largest: int = LARGEST_BATCH) -> int:
    """How many of the waiting groups are sent to a worker together."""
    if workers == 1:
        return min(largest, waiting)  # no other worker could take them
    return max(1, min(largest, waiting // (4 * workers)))


def worker_pool(
    settings: Settings, mode: str, store: Path, scratch: Path, tasks_each: int = 0
) -> AbstractContextManager[ProcessPool]:
    """Worker processes for one mode, stopped at once if an exception leaves the context."""
    options = WorkerOptions(settings, mode, store.absolute(), scratch, os.getpid())
    return worker_processes(settings.workers, start, options, tasks_each)


@contextmanager
def scratch_folder() -> Iterator[Path]:
    """A temporary folder for marker files and the workers' output."""
    with tempfile.TemporaryDirectory(prefix="mpsmith-") as folder:
        yield Path(folder)
