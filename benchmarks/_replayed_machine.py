"""A machine whose groups take what they took in a recorded run, and show what they showed: it waits, and computes not.

Given to a Dask worker with --preload, its sessions are such machines. The variable MPSMITH_REPLAYED names a file that
`_cluster_growth` writes: the recorded store, the groups, and the seconds of each.
"""

import json
import os
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from mpsmith.audit.model.group import GroupKey
from mpsmith.audit.model.selection import Settings
from mpsmith.audit.running.cluster import tasks
from mpsmith.audit.running.cluster.session import serve
from mpsmith.audit.running.progress import ProgressListener
from mpsmith.audit.running.worker import AuditPlan
from mpsmith.audit.store.records import Run, StoredGroup
from mpsmith.audit.store.store import Store

VARIABLE = "MPSMITH_REPLAYED"


class ReplayedExecution:
    """Stands in for the worker processes of a machine."""

    def __init__(self, settings: Settings, store: Store, scratch: Path) -> None:
        replayed = json.loads(Path(os.environ[VARIABLE]).read_text())
        self._recorded = Store.open(Path(replayed["store"]))
        self._groups = {
            GroupKey(*key): (StoredGroup(number, GroupKey(*key), True), seconds)
            for number, key, seconds in replayed["groups"]
        }
        self._store = store

    def __exit__(self, *exc_info: Any) -> None:
        self._recorded.close()

    def environment(self) -> dict[str, Any]:
        """That of the recorded run."""
        return self._recorded.latest_run().environment

    def plan(self) -> AuditPlan:
        """The groups of the file, those of strict mode come up by themselves."""
        return AuditPlan([key for key in self._groups if key.mode == "fallback"], self.environment())

    def execute(
        self, groups: Sequence[StoredGroup], positions: Mapping[GroupKey, frozenset[int]], progress: ProgressListener
    ) -> None:
        """Wait as long as each group took, and store its rows."""
        for group in groups:
            recorded, seconds = self._groups[group.key]
            time.sleep(seconds)
            self._store.add_rows([(group.id, self._recorded.rows_of([recorded])[0])])

    def probe_module(self, run: Run) -> None:
        """There is no module."""


if __name__ == "__main__":
    serve(Path(sys.argv[1]), ReplayedExecution)
else:
    tasks.COMMAND = ("-m", "benchmarks._replayed_machine")
