"""Audits on a real Dask scheduler with real workers, as processes: the store is that of an audit of one machine.

The machines behind the workers are pretended ones, without torch (tests/support/fake_machines.py).
"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path

import pytest
from distributed import Client

from mpsmith.audit.model.selection import Settings
from mpsmith.audit.running.cluster import StoppedError, audit_on_cluster, connected
from mpsmith.audit.running.cluster_task import (
    ClusterError,
    TaskAnswer,
    TaskRequest,
    Work,
    answer,
    code_fingerprint,
    device_of,
    difference,
)
from mpsmith.audit.running.runner import run_audit
from mpsmith.audit.shipped.kernels import crashing_kernels
from mpsmith.simulator.opening import DeviceKind
from support.fake_machines import FOLDER, TORCH, FakeExecution, contents, fake_execution

TESTS = Path(__file__).parents[3]
SETTINGS = Settings(device=DeviceKind.SIMULATED)
REQUEST = TaskRequest(SETTINGS.recorded(), 30.0, 0, code_fingerprint(), Work())


class DaskProcesses:
    """A scheduler on a free port, and workers that are started one by one; all are ended with the context."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.address = f"tcp://127.0.0.1:{free.getsockname()[1]}"
        port = self.address.rpartition(":")[2]
        self.scheduler = self._started("dask_scheduler", {}, "--host", "tcp://127.0.0.1", "--port", port)
        self._processes = [self.scheduler]

    def start(self, variables: Mapping[str, str] | None = None) -> None:
        """Start a worker with one thread, with these variables in its environment."""
        own = str(self._folder / str(len(self._processes)))
        options = ("--no-nanny", "--nthreads", "1", "--preload", "support.fake_machines", "--local-directory", own)
        self._processes.append(self._started("dask_worker", variables or {}, self.address, *options))

    def wait(self, workers: int) -> None:
        """Until so many workers are there."""
        with Client(self.address, set_as_default=False, timeout=60) as client:
            client.wait_for_workers(workers, timeout=120)

    def end(self) -> None:
        """End all processes."""
        for process in self._processes:
            process.kill()
            process.wait()

    def _started(self, what: str, variables: Mapping[str, str], *arguments: str) -> subprocess.Popen[bytes]:
        path = os.pathsep.join(filter(None, (str(TESTS), os.environ.get("PYTHONPATH"))))
        environment = {**os.environ, **variables, "PYTHONPATH": path}
        command = [sys.executable, "-m", f"distributed.cli.{what}", *arguments, "--no-dashboard"]
        with (self._folder / f"{what}.log").open("ab") as log:
            return subprocess.Popen(command, env=environment, stdout=log, stderr=log)


@pytest.fixture
def dask(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[DaskProcesses]:
    monkeypatch.setenv(FOLDER, str(tmp_path))
    processes = DaskProcesses(tmp_path)
    yield processes
    processes.end()


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> dict[int, object]:
    """What an audit of one machine stores."""
    path = tmp_path_factory.mktemp("undisturbed") / "store.sqlite"
    run_audit(SETTINGS, path, resume=False, say=print, execution=fake_execution)
    return contents(path)


def once_held(folder: Path, act: Callable[[int], None]) -> threading.Thread:
    """As soon as a group is held: do something, given the process id of its Dask worker, and let the group go on."""

    def wait() -> None:
        while not (folder / "held").exists():
            time.sleep(0.05)
        act(int((folder / "held").read_text()))
        (folder / "released").touch()

    thread = threading.Thread(target=wait, daemon=True)
    thread.start()
    return thread


def audited(dask: DaskProcesses, path: Path, settings: Settings = SETTINGS) -> None:
    audit_on_cluster(settings, path, dask.address, resume=False, say=print)


def test_the_work_of_a_killed_worker_goes_to_another(
    dask: DaskProcesses, tmp_path: Path, undisturbed: dict[int, object]
) -> None:
    dask.start()
    dask.start()
    dask.wait(2)
    once_held(tmp_path, lambda worker: os.kill(worker, signal.SIGKILL))
    audited(dask, tmp_path / "store.sqlite")
    assert contents(tmp_path / "store.sqlite") == undisturbed


def test_resumes_without_a_cluster_when_the_scheduler_is_gone(
    dask: DaskProcesses, tmp_path: Path, undisturbed: dict[int, object]
) -> None:
    dask.start()
    path = tmp_path / "store.sqlite"
    once_held(tmp_path, lambda _: dask.scheduler.kill())
    with pytest.raises(StoppedError, match="the cluster gives no answer"):
        audited(dask, path)
    assert contents(path) == {}
    run_audit(SETTINGS, path, resume=True, say=print, execution=fake_execution)
    assert contents(path) == undisturbed


def test_stops_where_workers_have_different_devices(dask: DaskProcesses, tmp_path: Path) -> None:
    (tmp_path / "released").touch()
    dask.start()
    dask.start({TORCH: "2.12.0"})
    dask.wait(2)
    with pytest.raises(StoppedError, match=r"a worker has torch 2\.1\d\.0, not 2\.1\d\.0: connect workers of one kind"):
        audited(dask, tmp_path / "store.sqlite")


def test_names_a_missing_scheduler_and_a_scheduler_without_workers(dask: DaskProcesses) -> None:
    with (
        pytest.raises(ClusterError, match=r"no Dask scheduler at .* \(start one with `dask scheduler`\)"),
        connected("tcp://127.0.0.1:9", timeout=0.2),
    ):
        pass
    with Client(dask.address, set_as_default=False, timeout=60):
        pass
    with pytest.raises(ClusterError, match="has no worker"), connected(dask.address, timeout=1.0):
        pass


def test_a_machine_does_the_work_of_a_request_and_nothing_else(tmp_path: Path) -> None:
    def done(work: Work) -> TaskAnswer:
        folder = tmp_path / str(len(list(tmp_path.iterdir())))
        folder.mkdir()
        result = answer(replace(REQUEST, work=work), folder, FakeExecution)
        assert crashing_kernels(folder) == [*work.crashing]
        return result

    planned = done(Work())
    assert planned.plan is not None
    keys = planned.plan.groups[1:3]
    executed = done(Work(((keys[0], frozenset({2})), (keys[1], None)), crashing=("sort_block",)))
    assert [rows.key for rows in executed.groups] == keys
    assert [row[0] for row in executed.groups[0].of("cases")] == [2]
    assert executed.crashing == ("sort_block",)
    assert [row.name for row in done(Work(probed=("torch.mps.a",))).module] == ["torch.mps.b"]


def test_a_machine_with_other_code_refuses(tmp_path: Path) -> None:
    with pytest.raises(ClusterError, match="install the same everywhere"):
        answer(replace(REQUEST, code="another"), tmp_path, FakeExecution)


def test_the_system_counts_on_a_mac_alone() -> None:
    mac = {"torch": "2.13.0", "simulated": False, "os": "macOS 15"}
    assert difference(device_of(mac), device_of({**mac, "os": "macOS 14"})) == "os macOS 15, not macOS 14"
    linux = {**mac, "simulated": True}
    assert difference(device_of(linux), device_of({**linux, "os": "macOS 14"})) == ""
