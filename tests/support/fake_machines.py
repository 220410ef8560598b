"""Machines that execute groups without torch: what a group shows is a function of its name alone.

A Dask worker that is started with `--preload support.fake_machines` has such a machine. A group of the operator "held"
waits until the file `released` is in the folder that MPSMITH_FAKE names: first it writes the process id of the Dask
worker into the file `held` there.
"""

from __future__ import annotations

import hashlib
import os
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from mpsmith.audit.model.group import GroupKey
from mpsmith.audit.model.selection import Settings
from mpsmith.audit.model.verdicts import CaseVerdict, Grade, Outcome
from mpsmith.audit.running import cluster_task
from mpsmith.audit.running.progress import ProgressListener
from mpsmith.audit.running.worker_tasks import AuditPlan
from mpsmith.audit.store.records import ModuleRow, ModuleStatus, Run, StoredGroup
from mpsmith.audit.store.store import Store

FOLDER = "MPSMITH_FAKE"
TORCH = "MPSMITH_FAKE_TORCH"
GROUPS = 60

cluster_task.COMMAND = ("-m", "support.fake_machines")


class FakeExecution:
    """Stands in for the worker processes of a machine."""

    def __init__(self, settings: Settings, store: Store, scratch: Path) -> None:
        self._settings = settings
        self._store = store

    def __enter__(self) -> FakeExecution:
        return self

    def __exit__(self, *exc_info: Any) -> None:
        pass

    def environment(self) -> dict[str, Any]:
        """Of a simulated device of the torch that the environment names."""
        return {
            "torch": os.environ.get(TORCH, "2.13.0"),
            "chip": "Pretended M9",
            "cpu": "none",
            "simulated": True,
            "profile": "2.13.0",
            "variables": {},
        }

    def plan(self) -> AuditPlan:
        """As many groups as the constant says, one of which is held, or those of `ops` alone."""
        names = self._settings.ops or ("held", *(f"op{number}" for number in range(GROUPS - 1)))
        return AuditPlan([GroupKey("pretended", name, "", "float32", "fallback") for name in names], self.environment())

    def execute(
        self, groups: Sequence[StoredGroup], positions: Mapping[GroupKey, frozenset[int]], progress: ProgressListener
    ) -> None:
        """Rows of every table, by the names of the groups."""
        for group in groups:
            if group.key.operator == "held":
                _hold()
            for position in sorted(positions.get(group.key, range(_number(group.key, 7) + 1))):
                self._add_case(group, position)
            self._store.add_called_overloads(group.id, {f"aten::{group.key.operator}": True, "aten::empty": False})
            if group.key.mode == "fallback":
                self._store.add_covered(group.id, 1, {0: (("size", "small"),)})
            self._store.mark_done(group.id)
            progress.advance(len(self._store.positions(group.id)))

    def _add_case(self, group: StoredGroup, position: int) -> None:
        verdict = (CaseVerdict.PASSED, CaseVerdict.WRONG, CaseVerdict.FALLBACK)[_number(group.key, 3)]
        fallbacks = (f"aten::{group.key.operator}",) if verdict is CaseVerdict.FALLBACK else ()
        error = (0.0, float("inf"), None)[_number(group.key, 3)]
        message = "" if verdict is CaseVerdict.PASSED else f'says "{group.key.label}", \u00fc\n{position}'
        outcome = Outcome(verdict, "forward", message, fallbacks, "close", error, bool(position % 2), 0.25)
        self._store.add_case(group.id, position, outcome, f"(float32[{position}])", Grade.DISPATCH_ONLY)
        if verdict is CaseVerdict.WRONG:
            self._store.add_inner_fault(group.id, position, None)
            self._store.add_case_kernels(group.id, position, ["kernel"])

    def probe_module(self, run: Run) -> None:
        """Two names."""
        for name in ("torch.mps.a", "torch.mps.b"):
            self._store.add_module_row(run.id, ModuleRow(name, ModuleStatus.WORKS, "pretended"))


@contextmanager
def fake_execution(settings: Settings, store: Store) -> Iterator[FakeExecution]:
    """The execution of an audit without any cluster."""
    yield FakeExecution(settings, store, Path())


def contents(path: Path) -> dict[int, Any]:
    """Everything that a store says of its finished runs, whatever the order in which it was found."""
    with Store.open(path) as store:
        return {
            run.id: (
                run.settings,
                run.environment,
                {rows.key: rows.tables for rows in store.rows_of(store.groups(run.id))},
                store.module_rows(run.id),
            )
            for run in store.runs()
            if run.finished is not None and all(group.done for group in store.groups(run.id))
        }


def _number(key: GroupKey, below: int) -> int:
    return int.from_bytes(hashlib.blake2b(key.operator.encode(), digest_size=4).digest(), "little") % below


def _hold() -> None:
    folder = Path(os.environ[FOLDER]) if FOLDER in os.environ else None
    if folder is not None and not (folder / "released").exists():
        (folder / "writing").write_text(str(os.getppid()))
        (folder / "writing").rename(folder / "held")
        while not (folder / "released").exists():
            time.sleep(0.05)


if __name__ == "__main__":
    cluster_task.main(Path(sys.argv[1]), FakeExecution)
