"""The process on a machine of the cluster that executes the groups of one audit.

A Dask worker starts one for each of its threads. A crash or a hang ends a process below it, as in an audit of one
machine, independently of how Dask runs its worker. It reads messages from standard input, one a
line, and writes an answer to each.
"""

from __future__ import annotations

import os
import select
import sys
import threading
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Protocol

from ....errors import MpsmithError, one_line
from ...model.group import GroupKey
from ...model.selection import Settings
from ...shipped.kernels import crashing_kernels, record_crashing_kernel
from ...store.records import ModuleRow, ModuleStatus, Run, StoredGroup
from ...store.store import Store
from ..isolated import IsolatedExecution, NoProgress
from ..progress import ProgressListener
from ..worker_limits import end_with_parent
from ..worker_tasks import AuditPlan
from .members import code_fingerprint
from .messages import (
    Answer,
    ExecuteBatch,
    Executed,
    Introduce,
    Introduction,
    MakePlan,
    ModuleProbed,
    Planned,
    ProbeModule,
    Request,
    WorkerProblem,
    as_text,
    read_message,
)

# A session that gets no message for so long ends: its coordinator was killed.
IDLE_SECONDS = 600.0


class MachineExecution(Protocol):
    """What executes groups on this machine: worker processes, or a substitute in tests."""

    def environment(self) -> dict[str, Any]:
        """What the results depend on here."""

    def plan(self) -> AuditPlan:
        """What there is to execute."""

    def execute(
        self, groups: Sequence[StoredGroup], positions: Mapping[GroupKey, frozenset[int]], progress: ProgressListener
    ) -> None:
        """Execute groups of one mode and mark them as done."""

    def probe_module(self, run: Run) -> None:
        """Probe torch.mps itself."""

    def __exit__(self, *exc_info: Any) -> None:
        """End what was started."""


class OpenMachineExecution(Protocol):
    """Makes a MachineExecution, as the class IsolatedExecution does."""

    def __call__(self, settings: Settings, store: Store, scratch: Path) -> MachineExecution:
        """What executes groups with these settings and puts their rows into `store`."""


class Session:
    """Answers the requests of one audit.

    Args:
        settings: of the audit, for one process.
        folder: for rows that are not sent yet, and for the files of the worker processes.
        open_execution: makes what executes the groups.
    """

    def __init__(
        self, settings: Settings, folder: Path, open_execution: OpenMachineExecution = IsolatedExecution
    ) -> None:
        self._folder = folder
        self._settings = settings
        self._ends = ExitStack()
        self._store = self._ends.enter_context(Store.create(folder / "batches.sqlite"))
        self._execution = open_execution(settings, self._store, folder)
        self._ends.push(self._execution.__exit__)

    def close(self) -> None:
        """End the processes."""
        self._ends.close()

    def answer(self, request: Request) -> Answer:
        """Execute a request. Raises MpsmithError if this machine cannot."""
        match request:
            case Introduce():
                return Introduction(self._execution.environment(), code_fingerprint())
            case MakePlan():
                plan = self._execution.plan()
                return Planned(tuple(plan.groups), plan.environment, plan.kernels)
            case ExecuteBatch():
                return self._execute(request)
            case ProbeModule():
                return self._probe(request)

    def _begin_run(self) -> Run:
        return self._store.begin_run(self._settings.recorded(), {})

    def _execute(self, batch: ExecuteBatch) -> Executed:
        for kernel in set(batch.crashing) - set(crashing_kernels(self._folder)):
            record_crashing_kernel(self._folder, kernel)
        run = self._begin_run()
        self._store.plan(run.id, {work.key: work.positions for work in batch.groups})
        groups = self._store.groups(run.id)
        positions = {work.key: frozenset(work.positions) for work in batch.groups if work.positions is not None}
        self._execution.execute(groups, positions, NoProgress())
        return Executed(tuple(self._store.rows_of(groups)), tuple(dict.fromkeys(crashing_kernels(self._folder))))

    def _probe(self, request: ProbeModule) -> ModuleProbed:
        run = self._begin_run()
        for name in request.recorded:
            self._store.add_module_row(run.id, ModuleRow(name, ModuleStatus.NOT_PROBED))
        self._execution.probe_module(run)
        rows = (row for row in self._store.module_rows(run.id) if row.name not in request.recorded)
        return ModuleProbed(tuple((row.name, row.status.value, row.detail) for row in rows))


def serve(folder: Path, open_execution: OpenMachineExecution = IsolatedExecution) -> None:
    """Answer messages of one audit from standard input until it ends, no message comes, or a request fails.

    A session ends after a failed request, so that its state does not reach another batch.
    """
    inbox, outbox = os.fdopen(os.dup(0), "rb", buffering=0), os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(2, 1)  # other prints must not look like answers
    threading.Thread(target=end_with_parent, args=(os.getppid(),), daemon=True).start()
    session: Session | None = None
    try:
        while select.select([inbox], [], [], IDLE_SECONDS)[0] and (line := inbox.readline()):
            answer: Answer
            try:
                message = read_message(line.decode())
                session = session or Session(message.options.as_settings(), folder, open_execution)
                answer = session.answer(message.request)
            except MpsmithError as error:
                answer = WorkerProblem(one_line(error))
            except Exception as error:
                answer = WorkerProblem(f"{type(error).__name__}: {one_line(error)}")
            print(as_text(answer), file=outbox, flush=True)
            if isinstance(answer, WorkerProblem):
                return
    finally:
        if session is not None:
            session.close()


if __name__ == "__main__":
    serve(Path(sys.argv[1]))
