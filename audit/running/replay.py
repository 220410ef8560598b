"""Runs one recorded case again, in a separate process, and shows both results."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeVar

from pebble import ProcessExpired

from ...errors import MpsmithError
from ..model.selection import Settings
from ..store.records import Run, StoredCase
from ..store.store import Store
from . import worker
from .isolated import scratch_folder, worker_pool
from .worker_exit import WorkerExit, exit_of
from .worker_tasks import Replay, Task

Result = TypeVar("Result")


@dataclass(frozen=True)
class Replayed:
    """A recorded case and its new result: a replay, or the exit of its process."""

    run: Run
    recorded: StoredCase
    replay: Replay | None
    worker_exit: WorkerExit | None = None

    @property
    def verdict(self) -> str:
        """The verdict of this execution."""
        if self.replay is not None:
            return self.replay.outcome.verdict.value
        return "timeout" if self.worker_exit is not None and self.worker_exit.timed_out else "crash"


def replay_case(path: Path, name: str, timeout: float) -> Replayed:
    """Execute a case of the store at `path` again, by its number or label: same inputs, mode, device and profile.

    Raises StoreError if there is no such case, MpsmithError if it cannot be made again here.
    """
    run, case = _recorded(path, name)
    try:
        return Replayed(run, case, _in_a_worker(path, run, case, timeout, worker.replay))
    except WorkerDiedError as died:
        return Replayed(run, case, None, died.worker_exit)


def script_of_case(path: Path, name: str, timeout: float) -> str:
    """The smallest case that still fails in the same way, as a program that needs only torch.

    Raises StoreError and MpsmithError as `replay_case` does, and MpsmithError for a case that kills its process.
    """
    run, case = _recorded(path, name)
    try:
        return _in_a_worker(path, run, case, timeout, worker.script)
    except WorkerDiedError as died:
        raise MpsmithError(f"case {name} kills its process ({died}), so it cannot be made smaller") from died


class WorkerDiedError(Exception):
    """The case ended its process; the message says how."""

    def __init__(self, worker_exit: WorkerExit) -> None:
        super().__init__(str(worker_exit))
        self.worker_exit = worker_exit


def _recorded(path: Path, name: str) -> tuple[Run, StoredCase]:
    with Store.open(path) as store:
        run, case = store.named_case(name)
    if case.position < 0:
        raise MpsmithError(f"case {name} is a group whose samples could not be made: {case.outcome.message}")
    return run, case


def _in_a_worker(path: Path, run: Run, case: StoredCase, timeout: float, work: Callable[[Task], Result]) -> Result:
    settings = replace(Settings.from_recorded(run.settings), workers=1, timeout=timeout)
    with scratch_folder() as scratch, worker_pool(settings, case.group.mode, path, scratch) as pool:
        task = Task(0, case.group, scratch / "replay.marker", frozenset({case.position}))
        try:
            result: Result = pool.schedule(work, args=(task,)).result()
            return result
        except ProcessExpired as expired:
            raise WorkerDiedError(exit_of(expired, scratch)) from expired
