"""A task of a cluster's worker: a part of an audit, in a separate process, as on one machine.

`python -m mpsmith.audit.running.cluster_task FOLDER` reads a request from standard input and writes the answer. A crash
ends that process or a child of it, but never the Dask worker.
"""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ...cache import fingerprint_of_code
from ...errors import MpsmithError, one_line
from ..model.group import GroupKey
from ..model.selection import Settings
from ..shipped.kernels import crashing_kernels, record_crashing_kernel
from ..store.group_rows import GroupRows
from ..store.records import ModuleRow, ModuleStatus
from ..store.store import Store
from .isolated import IsolatedExecution, NoProgress
from .worker_limits import end_with_parent
from .worker_tasks import AuditPlan

# Opens what executes groups on this machine and puts the rows into the store; tests have another than the default.
OpenExecution = Callable[[Settings, Store, Path], AbstractContextManager[Any]]
# The command of the process; the folder for its files follows.
COMMAND: Sequence[str] = ("-m", "mpsmith.audit.running.cluster_task")
# The parts of an environment that decide the results; on a Mac also the system, which has many of the kernels.
DECISIVE = ("torch", "chip", "cpu", "simulated", "profile", "shipped", "variables")


class ClusterError(MpsmithError):
    """The cluster cannot be used, or a worker cannot perform its task."""


@dataclass(frozen=True)
class Work:
    """The work of a task: execute groups, probe torch.mps, or, without either, make the plan.

    Attributes:
        groups: the groups to execute, of one mode, each with the positions of its cases; None for all.
        probed: the names of torch.mps that are recorded already; None to probe nothing.
        crashing: shipped kernels that ended a process on another machine; they are not launched.
    """

    groups: tuple[tuple[GroupKey, frozenset[int] | None], ...] = ()
    probed: tuple[str, ...] | None = None
    crashing: tuple[str, ...] = ()


@dataclass(frozen=True)
class TaskRequest:
    """A part of an audit: the settings as a run records them, the coordinator's code, and the work."""

    settings: dict[str, Any]
    timeout: float
    memory_limit: int
    code: str
    work: Work


@dataclass(frozen=True)
class TaskAnswer:
    """The environment that a machine's results depend on, and what was requested: the plan, or rows in order.

    `crashing`: the shipped kernels that ended a process, including those of the request.
    """

    environment: dict[str, Any]
    plan: AuditPlan | None = None
    groups: tuple[GroupRows, ...] = ()
    module: tuple[ModuleRow, ...] = ()
    crashing: tuple[str, ...] = ()


def code_fingerprint() -> str:
    """A fingerprint of the code that makes and judges cases on this machine."""
    return fingerprint_of_code("audit", "kernels", "simulator")


def device_of(environment: Mapping[str, Any]) -> dict[str, str]:
    """The kind of device of an environment: machines of the same kind may share a run."""
    names = DECISIVE if environment.get("simulated") else (*DECISIVE, "os")
    return {name: str(environment.get(name) or "none") for name in names}


def difference(device: Mapping[str, str], other: Mapping[str, str]) -> str:
    """How the first kind of device differs from the other; "" if they are equal."""
    names = dict.fromkeys((*device, *other))
    both = ((name, device.get(name, "none"), other.get(name, "none")) for name in names)
    return "; ".join(f"{name} {first}, not {second}" for name, first, second in both if first != second)


def perform(request: TaskRequest) -> TaskAnswer:
    """Answer a request in a new process. Raises ClusterError with the reason if that fails."""
    with tempfile.TemporaryDirectory(prefix="mpsmith-", ignore_cleanup_errors=True) as folder:
        command = [sys.executable, *COMMAND, folder]
        done = subprocess.run(command, input=pickle.dumps(request), stdout=subprocess.PIPE, check=False)
    answer = pickle.loads(done.stdout) if done.returncode == 0 else f"its process ended with {done.returncode}"
    if not isinstance(answer, TaskAnswer):
        raise ClusterError(f"a worker cannot continue: {answer}")
    return answer


def answer(request: TaskRequest, folder: Path, open_execution: OpenExecution = IsolatedExecution) -> TaskAnswer:
    """Do the work of a request in this process. Raises MpsmithError if that fails."""
    if request.code != code_fingerprint():
        raise ClusterError("its mpsmith is not the one of the coordinator (install the same everywhere)")
    settings = Settings.from_recorded(
        request.settings, workers=1, timeout=request.timeout, memory_limit=request.memory_limit
    )
    work = request.work
    with Store.create(folder / "batch.sqlite") as store, open_execution(settings, store, folder) as execution:
        if not work.groups and work.probed is None:
            plan: AuditPlan = execution.plan()
            return TaskAnswer(plan.environment, plan)
        environment = execution.environment()
        run = store.begin_run(settings.recorded(), {})
        if work.probed is not None:
            for name in work.probed:
                store.add_module_row(run.id, ModuleRow(name, ModuleStatus.NOT_PROBED))
            execution.probe_module(run)
            rows = (row for row in store.module_rows(run.id) if row.name not in work.probed)
            return TaskAnswer(environment, module=tuple(rows))
        for kernel in work.crashing:
            record_crashing_kernel(folder, kernel)
        store.plan(run.id, dict(work.groups))
        groups = store.groups(run.id)
        positions = {key: places for key, places in work.groups if places is not None}
        execution.execute(groups, positions, NoProgress())
        return TaskAnswer(environment, groups=tuple(store.rows_of(groups)), crashing=tuple(crashing_kernels(folder)))


def main(folder: Path, open_execution: OpenExecution = IsolatedExecution) -> None:
    """Read a request from standard input and write the answer to standard output: a TaskAnswer, or an error's text."""
    output = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # other prints must not look like an answer
    request = pickle.loads(sys.stdin.buffer.read())
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    threading.Thread(target=end_with_parent, args=(os.getppid(),), daemon=True).start()
    result: TaskAnswer | str
    try:
        result = answer(request, folder, open_execution)
    except MpsmithError as error:
        result = one_line(error)
    except Exception as error:
        result = f"{type(error).__name__}: {one_line(error)}"
    with output:
        pickle.dump(result, output)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
