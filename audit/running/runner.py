"""The parent of an audit: plans groups of cases, hands them to worker processes, and survives what they die of.

The parent loads neither torch nor any samples, so that its memory does not grow with the number of cases. First
every group runs with PYTORCH_ENABLE_MPS_FALLBACK=1, where each fallback is seen; then the cases in which something
fell back run again in strict processes. A case without any fallback makes the same calls in both modes.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from pathlib import Path

from filelock import FileLock, Timeout
from pebble import ProcessExpired, ProcessPool

from ...errors import MpsmithError
from ..findings.store import Run, Store, StoredGroup, StoreError
from ..group import COMPILED_MODES, GroupKey
from ..selection import Settings
from ..shipped.kernels import kernel_that_ran, note_deadly, note_slow
from ..verdicts import CaseVerdict, Grade, Outcome
from . import last_call, worker
from .death import death_of
from .look_budget import DeathBudget
from .module_probes import probe_module
from .progress import AuditProgress
from .worker_processes import worker_processes

# A group whose worker keeps dying without reaching a new case is given up after so many times.
STRIKES = 3


def run_audit(settings: Settings, path: Path, *, resume: bool, say: Callable[[str], None]) -> Run:
    """Run an audit into the store at `path`, or go on with the one that was stopped there.

    Raises:
        StoreError: the store cannot be used, or another audit is writing to it.
        MpsmithError: nothing is selected, nothing is to be resumed, or no worker can start.
        KeyboardInterrupt: stopped by the user; what had finished is in the store.
    """
    with _exclusive(path), scratch_folder() as scratch:
        store = Store.open_or_create(path)
        try:
            return _Audit(settings, store, scratch, say).run(resume)
        finally:
            store.close()


class _Audit:
    """One audit in progress."""

    def __init__(self, settings: Settings, store: Store, scratch: Path, say: Callable[[str], None]) -> None:
        self._settings = settings
        self._store = store
        self._scratch = scratch
        self._say = say
        self._deaths = DeathBudget()

    def run(self, resume: bool) -> Run:
        unfinished = self._resumable() if resume else None
        if unfinished is not None:
            self._settings = _as_recorded(unfinished, self._settings)
        with self._pool("fallback") as pool:
            plan = pool.schedule(worker.plan).result()
            run = unfinished or self._store.begin_run(self._settings.recorded(), plan.environment)
            _same_environment(run, plan.environment)
            self._say(_announcement(run, len(plan.groups)))
            self._store.plan(run.id, plan.groups)
            if plan.kernels:
                self._store.add_shipped_kernels(run.id, plan.kernels)
            for mode in ("fallback", *COMPILED_MODES):
                self._execute(pool, self._open_groups(run, mode), "audit" if mode == "fallback" else mode, {})
            if not run.compiled:
                self._probe_module(pool, run)
        if not run.compiled:
            self._run_strict(run)
        self._store.finish_run(run.id)
        return self._store.run(run.id)

    def _probe_module(self, pool: ProcessPool, run: Run) -> None:
        """Last, so that whatever a probe leaves behind reaches no case; not where a few operators are asked for."""
        settings = self._settings
        if not (settings.faults or settings.ops or settings.dtypes):
            probe_module(pool, self._store, run, settings.imports, self._scratch, settings.workers)

    def _run_strict(self, run: Run) -> None:
        fell_back = self._store.positions_with_fallback(run.id)
        positions = {replace(key, mode="strict"): frozenset(places) for key, places in fell_back.items()}
        self._store.plan(run.id, positions)
        groups = self._open_groups(run, "strict")
        if groups:
            with self._pool("strict") as pool:
                self._execute(pool, groups, "strict", positions)

    def _open_groups(self, run: Run, mode: str) -> list[StoredGroup]:
        return [g for g in self._store.groups(run.id) if g.key.mode == mode and not g.done]

    def _resumable(self) -> Run:
        run = self._store.newest_run()
        if run is None:
            raise MpsmithError(f"{self._store.path}: holds no audit yet, there is nothing to resume")
        if run.finished is not None:
            raise MpsmithError(f"{self._store.path}: run {run.id} is finished, there is nothing to resume")
        return run

    def _execute(
        self,
        pool: ProcessPool,
        groups: Sequence[StoredGroup],
        title: str,
        positions: dict[GroupKey, frozenset[int]],
    ) -> None:
        waiting = iter(groups)
        running: dict[Future[int], worker.Task] = {}
        strikes: dict[int, int] = {}
        with AuditProgress(title, len(groups)) as progress:
            while True:
                self._fill(pool, waiting, running, positions)
                if not running:
                    return
                done, _ = wait(running, return_when=FIRST_COMPLETED)
                for future in done:
                    task = running.pop(future)
                    try:
                        progress.advance(future.result())
                    except ProcessExpired as expired:
                        strikes[task.group] = strikes.get(task.group, 0) + 1
                        again = self._record_death(pool, task, expired, strikes[task.group])
                        progress.advance(1, group_done=not again, crashed=True)
                        if again:
                            running[pool.schedule(worker.run_group, args=(task,))] = task

    def _fill(
        self,
        pool: ProcessPool,
        waiting: Iterator[StoredGroup],
        running: dict[Future[int], worker.Task],
        positions: dict[GroupKey, frozenset[int]],
    ) -> None:
        """Keep a few tasks ahead of the workers; more would only cost memory."""
        while len(running) < 2 * self._settings.workers:
            group = next(waiting, None)
            if group is None:
                return
            task = worker.Task(group.id, group.key, self._scratch / f"{group.id}.marker", positions.get(group.key))
            running[pool.schedule(worker.run_group, args=(task,))] = task

    def _record_death(self, pool: ProcessPool, task: worker.Task, expired: ProcessExpired, strike: int) -> bool:
        """Record the case that killed its worker; returns whether the group's other cases are still to be run."""
        announced = worker.announced(task.marker)
        task.marker.unlink(missing_ok=True)
        death = death_of(expired, self._scratch)
        grade = None
        if kernel := kernel_that_ran(self._scratch, expired.pid):
            if death.timed_out and announced is not None and announced[1] == worker.ON_DEVICE:
                note_slow(self._scratch, task.group, announced[0], kernel)
                return True  # the case is run again, with the stand-ins
            note_deadly(self._scratch, kernel)
            grade = Grade.SHIPPED_KERNEL
            death = replace(death, cause=f"{death.cause} in the shipped kernel {kernel}")
        if announced is not None and announced[1] == worker.INSIDE:  # the case itself is recorded
            return True
        if announced is not None and announced[0] not in self._store.positions(task.group):
            position, place = announced
            if position == worker.MAKING_SAMPLES:
                outcome = Outcome(CaseVerdict.REFERENCE_FAILED, "samples", f"making the samples ends in {death}")
                self._store.add_case(task.group, position, outcome, "")
                self._store.mark_done(task.group)
                return False
            if place == worker.ON_DEVICE:
                verdict = CaseVerdict.TIMEOUT if death.timed_out else CaseVerdict.CRASH
                outcome = Outcome(verdict, "forward", death.cause)
            else:
                outcome = Outcome(CaseVerdict.REFERENCE_FAILED, "forward", f"the CPU's run ends in {death}")
            self._store.add_case(task.group, position, outcome, "", grade)
            if grade is not None:
                self._store.add_case_kernels(task.group, position, [kernel])
            looks_inside = outcome.verdict.executed and task.key.mode not in COMPILED_MODES
            if looks_inside and self._deaths.allows(task.key, outcome.verdict):
                self._look_at_death(pool, replace(task, positions=frozenset({position})), position)
            return True
        if strike >= STRIKES:
            raise MpsmithError(f"{task.key.label}: the worker dies before its first case, {death} (run --resume later)")
        return True

    def _look_at_death(self, pool: ProcessPool, task: worker.Task, position: int) -> None:
        """Record which call inside a case it was that killed a worker, by letting another one die of it."""
        try:
            pool.schedule(worker.look_at_death, args=(task,)).result()
        except ProcessExpired as expired:
            found = last_call.read(last_call.path_of(task.marker), death_of(expired, self._scratch))
            self._store.add_look_inside(task.group, position, found)

    def _pool(self, mode: str) -> AbstractContextManager[ProcessPool]:
        return worker_pool(self._settings, mode, self._store.path, self._scratch)


def worker_pool(settings: Settings, mode: str, store: Path, scratch: Path) -> AbstractContextManager[ProcessPool]:
    """Worker processes for one mode, stopped at once when the context is left by an exception."""
    options = worker.WorkerOptions(settings, mode, store.absolute(), scratch, os.getpid())
    return worker_processes(settings.workers, worker.start, options)


def _as_recorded(run: Run, given: Settings) -> Settings:
    return Settings.from_recorded(
        run.settings, workers=given.workers, timeout=given.timeout, memory_limit=given.memory_limit
    )


def _same_environment(run: Run, environment: dict[str, object]) -> None:
    for name in ("torch", "simulated", "profile", "shipped"):
        before, now = (each.get(name, "none") for each in (run.environment, environment))
        if before != now:
            raise MpsmithError(
                f"run {run.id} was made with {name} {before}, this is {now}: start a new audit without --resume"
            )


def _announcement(run: Run, groups: int) -> str:
    environment = run.environment
    if run.simulated:
        device = f"SIMULATED mps device with the coverage of torch {environment['profile']}; not evidence about a Mac"
        if environment.get("shipped"):
            device += f", and the kernels that torch {environment['shipped']} ships to Macs"
    else:
        device = f"mps device of this machine ({environment['chip']})"
    lane = ", every call under torch.compile" if run.compiled else ""
    if environment.get("codegen"):
        lane += f" with the code generator of torch {environment['codegen']} (an overlay)"
    return f"run {run.id}: torch {environment['torch']}, {device}{lane}; {groups:,} groups of cases"


@contextmanager
def _exclusive(path: Path) -> Iterator[None]:
    """One audit at a time owns a store: two would plan over each other."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        lock = FileLock(f"{path}.lock", timeout=0)
        lock.acquire()
    except Timeout as error:
        raise StoreError(f"{path}: another audit is writing to it (wait for it, or choose another --store)") from error
    except OSError as error:
        raise StoreError(f"{path}: {error.strerror} (choose a writable place with --store)") from error
    try:
        yield
    finally:
        lock.release()


@contextmanager
def scratch_folder() -> Iterator[Path]:
    """A folder for markers and the workers' last words, gone afterwards."""
    with tempfile.TemporaryDirectory(prefix="mpsmith-") as folder:
        yield Path(folder)
