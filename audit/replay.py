"""Runs one recorded case again, in a process of its own, and shows both results."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from pebble import ProcessExpired

from ..errors import MpsmithError
from . import worker
from .runner import cause_of_death, scratch_folder, worker_pool
from .selection import Settings
from .store import Run, Store, StoredCase


@dataclass(frozen=True)
class Replayed:
    """A recorded case, and what it gave this time: a replay, or how its process died."""

    run: Run
    recorded: StoredCase
    replay: worker.Replay | None
    death: str = ""

    @property
    def verdict(self) -> str:
        """The verdict of this execution."""
        if self.replay is not None:
            return self.replay.outcome.verdict.value
        return "timeout" if self.death == "time-out" else "crash"


def replay_case(path: Path, number: int, timeout: float) -> Replayed:
    """Execute case `number` of the store at `path` again, exactly as it was: same inputs, mode, device and profile.

    Raises StoreError when there is no such case, MpsmithError when it cannot be made again here.
    """
    with Store.open(path) as store:
        run, case = store.case(number)
    if case.position < 0:
        raise MpsmithError(f"case {number} is a group whose samples could not be made: {case.outcome.message}")
    settings = replace(Settings.from_recorded(run.settings), workers=1, timeout=timeout)
    with scratch_folder() as scratch, worker_pool(settings, case.group.mode, path, scratch) as pool:
        task = worker.Task(0, case.group, scratch / "replay.marker", frozenset({case.position}))
        try:
            return Replayed(run, case, pool.schedule(worker.replay, args=(task,)).result())
        except ProcessExpired as expired:
            return Replayed(run, case, None, cause_of_death(expired, scratch))
