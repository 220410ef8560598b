"""Runs an audit from its plan to its last row: what it executes, in which order, and how it resumes.

The parent loads neither torch nor any samples, so that its memory does not grow with the number of cases. First
every group runs with PYTORCH_ENABLE_MPS_FALLBACK=1, where each fallback is recorded; then the cases in which something
fell back run again in strict processes. A case without any fallback makes the same calls in both modes.

A `GroupExecution` decides where groups run: in worker processes of this machine (isolated.py), or on a cluster.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, Protocol

from filelock import FileLock, Timeout

from ...errors import MpsmithError
from ..model.group import COMPILED_MODES, GroupKey
from ..model.selection import Settings
from ..store.connection import StoreError
from ..store.records import STRICT, Run, StoredGroup
from ..store.store import Store
from .isolated import isolated
from .new_findings import NewFindings
from .progress import REPORT_SHARE, STRICT_SHARE, AuditProgress, ProgressListener, cost_of
from .worker_tasks import AuditPlan


class GroupExecution(Protocol):
    """Executes the groups of one audit. Their rows are in the store when `execute` returns."""

    def plan(self) -> AuditPlan:
        """The groups and the environment. Raises MpsmithError if nothing is selected, or no worker starts."""

    def execute(
        self, groups: Sequence[StoredGroup], positions: Mapping[GroupKey, frozenset[int]], progress: ProgressListener
    ) -> None:
        """Execute groups of one mode and mark them as done; of those in `positions`, only these cases."""

    def probe_module(self, run: Run) -> None:
        """Probe torch.mps itself, name by name."""


OpenExecution = Callable[[Settings, Store], AbstractContextManager[GroupExecution]]


class OpenProgress(Protocol):
    """Opens the progress of groups with these costs; the arguments are those of AuditProgress."""

    def __call__(
        self, title: str, costs: Sequence[float], *, share_after: float = 0.0, seconds_after: float = 0.0
    ) -> AuditProgress:
        """Open the progress."""


def run_audit(
    settings: Settings, path: Path, *, resume: bool, say: Callable[[str], None], execution: OpenExecution = isolated
) -> Run:
    """Run an audit into the store at `path`, or continue the one that was stopped there.

    Raises:
        StoreError: the store cannot be used, or another audit is writing to it.
        MpsmithError: nothing is selected, nothing is to be resumed, or no worker can start.
        KeyboardInterrupt: stopped by the user; what had finished is in the store.
    """
    with exclusive(path), Store.open_or_create(path) as store:
        unfinished = resumable(store) if resume else None
        if unfinished is not None:
            settings = as_recorded(unfinished, settings)
        return audit_into(store, settings, unfinished, say, execution)


def audit_into(
    store: Store,
    settings: Settings,
    unfinished: Run | None,
    say: Callable[[str], None],
    execution: OpenExecution,
    progress: OpenProgress = AuditProgress,
) -> Run:
    """Run an audit into an open store, or continue an unfinished run. No other process may be planning a run in it."""
    with execution(settings, store) as where:
        return _Audit(settings, store, where, say, progress).run(unfinished)


class _Audit:
    """One audit in progress."""

    def __init__(
        self,
        settings: Settings,
        store: Store,
        execution: GroupExecution,
        say: Callable[[str], None],
        progress: OpenProgress,
    ) -> None:
        self._settings = settings
        self._store = store
        self._execution = execution
        self._say = say
        self._progress = progress
        self._report_seconds = 0.0  # an estimate for registry and report, once the cases are done

    def run(self, unfinished: Run | None) -> Run:
        plan = self._execution.plan()
        run = unfinished or self._store.begin_run(self._settings.recorded(), plan.environment)
        _same_environment(run, plan.environment)
        self._say(_announcement(run, len(plan.groups)))
        self._store.plan(run.id, plan.groups)
        if unfinished:  # a worker that was stopped may have recorded a wrong case without what was to follow
            self._store.reopen(group.id for group in self._store.open_groups(run.id, "fallback"))
        if plan.kernels:
            self._store.add_shipped_kernels(run.id, plan.kernels)
        for mode in ("fallback", *COMPILED_MODES):
            self._execute(run, mode, "audit" if mode == "fallback" else mode, {})
        if not run.compiled:
            self._probe_module(run)
            self._run_strict(run)
        self._store.finish_run(run.id)
        return self._store.run(run.id)

    def _probe_module(self, run: Run) -> None:
        """Probe torch.mps last, so that side effects of probes reach no case; not in audits of some operators."""
        settings = self._settings
        if not (settings.faults or settings.ops or settings.dtypes):
            self._execution.probe_module(run)

    def _run_strict(self, run: Run) -> None:
        fell_back = self._store.positions_with_fallback(run.id)
        positions = {replace(key, mode=STRICT): frozenset(places) for key, places in fell_back.items()}
        self._store.plan(run.id, positions)
        self._execute(run, STRICT, STRICT, positions)

    def _execute(self, run: Run, mode: str, title: str, positions: Mapping[GroupKey, frozenset[int]]) -> None:
        if groups := self._store.open_groups(run.id, mode):
            costs = [cost_of(group.key.source) for group in groups]
            share = STRICT_SHARE + REPORT_SHARE if mode == "fallback" else 0.0
            start = time.monotonic()
            with self._progress(title, costs, share_after=share, seconds_after=self._report_seconds) as progress:
                listener = (
                    progress if mode == STRICT else NewFindings(self._store, run.id, progress, progress.print_findings)
                )
                self._execution.execute(groups, positions, listener)
            if mode == "fallback":
                self._report_seconds = REPORT_SHARE * (time.monotonic() - start)


def resumable(store: Store) -> Run:
    """The run of a store that was stopped. Raises MpsmithError if there is none."""
    run = store.newest_run()
    if run is None:
        raise MpsmithError(f"{store.path}: holds no audit yet, there is nothing to resume")
    if run.finished is not None:
        raise MpsmithError(f"{store.path}: run {run.id} is finished, there is nothing to resume")
    return run


def as_recorded(run: Run, given: Settings) -> Settings:
    """The settings of a recorded run, with the limits given now."""
    return Settings.from_recorded(
        run.settings, workers=given.workers, timeout=given.timeout, memory_limit=given.memory_limit
    )


def _same_environment(run: Run, environment: Mapping[str, Any]) -> None:
    for name in ("torch", "simulated", "profile", "shipped"):
        before, now = run.environment.get(name, "none"), environment.get(name, "none")
        if before != now:
            raise MpsmithError(
                f"run {run.id} was made with {name} {before}, this is {now}: start a new audit without --resume"
            )


def _announcement(run: Run, groups: int) -> str:
    environment = run.environment
    if run.simulated:
        device = f"SIMULATED mps device with the coverage of torch {environment['profile']}; not evidence about a Mac"
        if run.host_code:
            device += f", and the host code of {run.host_code}"
        if environment.get("shipped"):
            device += f", and the kernels that torch {environment['shipped']} ships to Macs"
    else:
        device = f"mps device of this machine ({environment['chip']})"
    lane = ", every call under torch.compile" if run.compiled else ""
    return f"run {run.id}: torch {environment['torch']}, {device}{lane}; {groups:,} group{'s' * (groups != 1)} of cases"


@contextmanager
def exclusive(path: Path) -> Iterator[None]:
    """Lock a store for one audit: two would interfere with each other's plans. Raises StoreError for the second one."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        lock = FileLock(f"{path}.lock", timeout=0)
        lock.acquire()
    except Timeout as error:
        if not Path(f"{path}.lock").exists():  # some file systems refuse the lock file in another way
            raise StoreError(f"{path}: cannot be written (choose another place with --store)") from error
        raise StoreError(f"{path}: another audit is writing to it (wait for it, or choose another --store)") from error
    except OSError as error:
        raise StoreError(f"{path}: {error.strerror} (choose a writable place with --store)") from error
    try:
        yield
    finally:
        lock.release()
