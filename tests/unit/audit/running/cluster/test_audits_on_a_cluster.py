"""Audits on a real scheduler and real workers, as processes: whatever ends, the store is that of an undisturbed audit.

The machines behind the workers are pretended ones, without torch (tests/support/fake_machines.py).
"""

from __future__ import annotations

import fcntl
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from mpsmith.audit.model.selection import Settings
from mpsmith.audit.running.cluster.auditing import audit_on_cluster
from mpsmith.audit.running.cluster.connection import Connection
from mpsmith.audit.running.cluster.messages import ClusterError, StoppedError
from mpsmith.audit.running.runner import run_audit
from mpsmith.audit.store.records import Run
from mpsmith.audit.store.store import now
from mpsmith.simulator.opening import DeviceKind
from support.dask_processes import DaskProcesses
from support.fake_machines import CLOCK, FOLDER, FULL, TORCH, contents, fake_execution

SETTINGS = Settings(device=DeviceKind.SIMULATED)


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> dict[int, object]:
    """What an audit without any cluster stores."""
    path = tmp_path_factory.mktemp("undisturbed") / "store.sqlite"
    run_audit(SETTINGS, path, resume=False, say=print, execution=fake_execution)
    return contents(path)


class Meeting:
    """Where the test waits for a group to be held, and lets it go on."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._holding: list[str] = []
        os.mkfifo(folder / "held")
        self._gate = (folder / "go").open("w")
        fcntl.flock(self._gate, fcntl.LOCK_EX)

    def held(self) -> tuple[int, int]:
        """Wait for a group that is held: the process ids of its session and its Dask worker."""
        if not self._holding:  # where one is late, a second one has its group too
            self._holding = (self.folder / "held").read_text().splitlines()
        session, worker = self._holding.pop(0).split()
        return int(session), int(worker)

    def release(self) -> None:
        """No group is held from now on."""
        (self.folder / "released").touch()

    def go(self) -> None:
        """What is held goes on, and so does what was about to say that it is."""
        os.open(self.folder / "held", os.O_RDONLY | os.O_NONBLOCK)
        self._gate.close()


@pytest.fixture
def meeting(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Meeting:
    monkeypatch.setenv(FOLDER, str(tmp_path))
    return Meeting(tmp_path)


@pytest.fixture
def dask(tmp_path: Path, meeting: Meeting) -> Iterator[DaskProcesses]:
    with DaskProcesses(tmp_path) as processes:
        yield processes


class Said:
    """What an audit said so far; others can wait for a text in it."""

    def __init__(self) -> None:
        self._texts: list[str] = []
        self._more = threading.Condition()

    def __call__(self, text: str) -> None:
        with self._more:
            self._texts.append(text)
            self._more.notify_all()

    def wait_for(self, part: str) -> None:
        """Until a text with this part was said."""
        with self._more:
            assert self._more.wait_for(lambda: any(part in text for text in self._texts), timeout=300), part


def audited(dask: DaskProcesses, path: Path, say: Said | None = None, *, resume: bool = False) -> Run:
    return audit_on_cluster(SETTINGS, path, dask.address, resume=resume, say=say or Said())


def meanwhile(work: Callable[[], object]) -> threading.Thread:
    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    return thread


def test_survives_lost_and_unfit_workers(
    dask: DaskProcesses, meeting: Meeting, tmp_path: Path, undisturbed: dict[int, object]
) -> None:
    for name in ("one", "two", "three"):
        dask.start(name)
    dask.start("other", {TORCH: "2.12.0"})
    dask.start("full", {FULL: "1"})
    dask.wait(5)
    said = Said()

    def disturb() -> None:
        _, killed = meeting.held()
        os.kill(killed, signal.SIGKILL)
        said.wait_for("has gone; its groups go to other workers")
        said.wait_for("left out: it has torch 2.12.0, not 2.13.0")
        said.wait_for("left out: OSError: [Errno 28] No space left on device")
        meeting.held()  # another worker has the group now
        meeting.release()
        meeting.go()

    disturbing = meanwhile(disturb)
    audited(dask, tmp_path / "store.sqlite", said)
    disturbing.join()
    assert contents(tmp_path / "store.sqlite") == undisturbed


@pytest.mark.rehearsal  # hangs in some runs of a busy machine, so the nightly run has it
def test_survives_a_cut_connection_and_wrong_clocks(
    dask: DaskProcesses, meeting: Meeting, tmp_path: Path, undisturbed: dict[int, object]
) -> None:
    for name in ("one", "two"):
        dask.start(name, {CLOCK: "2001-01-01T00:00:00+00:00"}, by_cable=True)
    dask.wait(2)
    said = Said()

    def disturb() -> None:
        _, worker = meeting.held()
        dask.cut_off(worker)
        said.wait_for("has gone; its groups go to other workers")
        meeting.held()  # with the other one
        meeting.release()
        meeting.go()

    disturbing = meanwhile(disturb)
    began = now()
    run = audited(dask, tmp_path / "store.sqlite", said)
    disturbing.join()
    assert contents(tmp_path / "store.sqlite") == undisturbed
    assert run.finished is not None
    assert began <= run.started <= run.finished <= now()


def test_resumes_after_a_killed_coordinator(
    dask: DaskProcesses, meeting: Meeting, tmp_path: Path, undisturbed: dict[int, object]
) -> None:
    dask.start("one")
    dask.wait(1)
    path = tmp_path / "store.sqlite"
    program = (
        "from pathlib import Path\n"
        "from mpsmith.audit.model.selection import DeviceKind, Settings\n"
        "from mpsmith.audit.running.cluster.auditing import audit_on_cluster\n"
        f"audit_on_cluster(Settings(device=DeviceKind.SIMULATED), Path({str(path)!r}), {dask.address!r},"
        " resume=False, say=print)\n"
    )
    coordinator = subprocess.Popen([sys.executable, "-c", program])
    meeting.held()
    coordinator.kill()
    coordinator.wait()
    assert contents(path) == {}
    meeting.release()
    meeting.go()
    audited(dask, path, resume=True)
    assert contents(path) == undisturbed


def test_resumes_without_a_cluster_after_a_killed_scheduler(
    dask: DaskProcesses, meeting: Meeting, tmp_path: Path, undisturbed: dict[int, object]
) -> None:
    dask.start("one")
    dask.wait(1)
    path = tmp_path / "store.sqlite"

    def disturb() -> None:
        meeting.held()
        dask.scheduler.kill()
        meeting.release()

    disturbing = meanwhile(disturb)
    with pytest.raises(StoppedError, match=r"the Dask scheduler at .* is gone"):
        audited(dask, path)
    disturbing.join()
    run_audit(SETTINGS, path, resume=True, say=print, execution=fake_execution)
    assert contents(path) == undisturbed


def test_names_a_missing_scheduler() -> None:
    with pytest.raises(ClusterError, match=r"no Dask scheduler at .* \(start one with `dask scheduler`\)"):
        Connection("tcp://127.0.0.1:9", timeout=0.2)


def test_refuses_two_equally_common_devices(dask: DaskProcesses, meeting: Meeting, tmp_path: Path) -> None:
    meeting.release()
    dask.start("one")
    dask.start("other", {TORCH: "2.12.0"})
    dask.wait(2)
    with pytest.raises(ClusterError, match=r"the workers differ: some have torch 2\.1"):
        audited(dask, tmp_path / "store.sqlite")
