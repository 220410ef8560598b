"""The process on a machine of the cluster that executes the groups of one audit, and answers for them.

It is started by a Dask worker, one for each of its threads, and lives in a process of its own: what crashes or hangs
ends a process below it, as in an audit of one machine, and how Dask runs its worker makes no difference to it. It
reads messages from its standard input, a line each, and writes an answer to each.
"""

from __future__ import annotations

import os
import select
import sys
import threading
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from time import monotonic
from typing import Any, Protocol

from ....errors import MpsmithError, one_line
from ...model.group import GroupKey
from ...model.selection import Settings
from ...shipped.kernels import deadly_kernels, note_deadly
from ...store.records import ModuleRow, ModuleStatus, Run, StoredGroup
from ...store.store import Store
from ..isolated import IsolatedExecution
from ..progress import ProgressListener
from ..worker import AuditPlan
from ..worker_limits import end_with_parent
from . import devices, messages
from .messages import (
    ExecuteBatch,
    Executed,
    Introduce,
    Introduction,
    MakePlan,
    ModuleProbed,
    Planned,
    ProbeModule,
    WorkerProblem,
)

# Without a message for so long, nobody is there any more: a coordinator was killed.
IDLE_SECONDS = 600.0


class MachineExecution(Protocol):
    """What executes groups on this machine: worker processes, or what stands in for them."""

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
        """What executes groups with these settings, with its rows in `store`."""


class _Unwatched:
    """Nobody looks at the progress of a batch."""

    def advance(self, cases: int, *, group_done: bool = True, crashed: bool = False) -> None:
        """Counts nothing."""


class Session:
    """Answers the requests of one audit.

    Args:
        settings: of the audit, for one process.
        folder: for the rows until they are told, for markers and last words.
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
        self._environment: dict[str, Any] | None = None

    def close(self) -> None:
        """End the processes; the session answers no more."""
        self._ends.close()

    def answer(
        self, request: Introduce | MakePlan | ExecuteBatch | ProbeModule
    ) -> Introduction | Planned | Executed | ModuleProbed | WorkerProblem:
        """What became of a request. Raises MpsmithError where it cannot be done here."""
        if isinstance(request, Introduce):
            return Introduction(self._known_environment(), devices.code())
        if isinstance(request, MakePlan):
            plan = self._execution.plan()
            return Planned(tuple(plan.groups), plan.environment, plan.kernels)
        if differs := devices.difference(devices.device_of(self._known_environment()), request.device):
            return WorkerProblem(f"this worker has {differs}")
        if isinstance(request, ExecuteBatch):
            return self._executed(request)
        return self._probed(request)

    def _known_environment(self) -> dict[str, Any]:
        if self._environment is None:
            self._environment = self._execution.environment()
        return self._environment

    def _executed(self, batch: ExecuteBatch) -> Executed:
        begun = monotonic()
        for kernel in set(batch.deadly) - set(deadly_kernels(self._folder)):
            note_deadly(self._folder, kernel)
        run = self._store.begin_run(self._settings.recorded(), self._known_environment())
        asked = {work.key: work.positions for work in batch.groups}
        self._store.plan(run.id, asked)
        groups = self._store.groups(run.id)
        positions = {key: frozenset(places) for key, places in asked.items() if places is not None}
        self._execution.execute(groups, positions, _Unwatched())
        deadly = tuple(dict.fromkeys(deadly_kernels(self._folder)))
        return Executed(tuple(self._store.rows_of(groups)), monotonic() - begun, deadly)

    def _probed(self, request: ProbeModule) -> ModuleProbed:
        run = self._store.begin_run(self._settings.recorded(), self._known_environment())
        for name in request.recorded:
            self._store.add_module_row(run.id, ModuleRow(name, ModuleStatus.NOT_PROBED))
        self._execution.probe_module(run)
        recorded = set(request.recorded)
        rows = (row for row in self._store.module_rows(run.id) if row.name not in recorded)
        return ModuleProbed(tuple((row.name, row.status.value, row.detail) for row in rows))


def serve(folder: Path, open_execution: OpenMachineExecution = IsolatedExecution) -> None:
    """Answer messages of one audit from standard input until it ends, nobody asks any more, or something is wrong.

    A session that had a problem ends: what it left behind reaches no other batch.
    """
    inbox, outbox = os.fdopen(os.dup(0), "rb", buffering=0), os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(2, 1)  # what anybody prints is no answer
    threading.Thread(target=end_with_parent, args=(os.getppid(),), daemon=True).start()
    session: Session | None = None
    try:
        while select.select([inbox], [], [], IDLE_SECONDS)[0] and (line := inbox.readline()):
            answer: Introduction | Planned | Executed | ModuleProbed | WorkerProblem
            try:
                message = messages.message_in(line.decode())
                session = session or Session(message.options.as_settings(), folder, open_execution)
                answer = session.answer(message.request)
            except MpsmithError as error:
                answer = WorkerProblem(one_line(error))
            except Exception as error:
                answer = WorkerProblem(f"{type(error).__name__}: {one_line(error)}")
            print(messages.as_text(answer), file=outbox, flush=True)
            if isinstance(answer, WorkerProblem):
                return
    finally:
        if session is not None:
            session.close()


if __name__ == "__main__":
    serve(Path(sys.argv[1]))
