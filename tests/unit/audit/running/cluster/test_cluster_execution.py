"""Audits on fake workers that end, repeat answers or answer nonsense: the store is that of one machine.

The connection and the machines are fake here; test_audits_on_a_cluster.py has Dask's own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import nullcontext
from pathlib import Path

import pytest

from mpsmith.audit.model.selection import Settings
from mpsmith.audit.running.cluster import execution, members, messages
from mpsmith.audit.running.cluster.connection import Reply
from mpsmith.audit.running.cluster.execution import ClusterExecution
from mpsmith.audit.running.cluster.members import Members
from mpsmith.audit.running.cluster.messages import (
    Answer,
    AuditOptions,
    ClusterError,
    Executed,
    Introduction,
    MakePlan,
    StoppedError,
    WorkerMessage,
    WorkerProblem,
)
from mpsmith.audit.running.cluster.session import Session
from mpsmith.audit.running.runner import audit_into, run_audit
from mpsmith.audit.store.store import Store
from mpsmith.simulator.opening import DeviceKind
from support.fake_machines import FakeExecution, contents, fake_execution

SETTINGS = Settings(device=DeviceKind.SIMULATED)
# What a worker does with a message: its answers, or None where it ends.
Behaviour = Callable[[WorkerMessage, Answer], list[Answer] | None]


def honest(_: WorkerMessage, answer: Answer) -> list[Answer]:
    return [answer]


class FakeConnection:
    """Machines in this process, which answer as soon as a message is sent."""

    address = "tcp://fake"

    def __init__(self, folder: Path, behaviours: dict[str, Behaviour]) -> None:
        self._folder = folder
        self._behaviours = behaviours
        self._sessions: dict[str, Session] = {}
        self._threads = dict.fromkeys(behaviours, 1)
        self._replies: list[Reply] = []

    def workers(self) -> dict[str, int]:
        return dict(self._threads)

    def send(self, worker: str, number: int, text: str) -> None:
        if worker not in self._threads:
            return
        message = messages.read_message(text)
        if worker not in self._sessions:
            (self._folder / worker).mkdir()
            self._sessions[worker] = Session(message.options.as_settings(), self._folder / worker, FakeExecution)
        answers = self._behaviours[worker](message, self._sessions[worker].answer(message.request))
        if answers is None:
            del self._threads[worker]
        self._replies += [Reply(worker, number, answer) for answer in answers or ()]

    def replies(self, seconds: float) -> Iterator[Reply]:
        while self._replies:
            yield self._replies.pop(0)

    def cancel(self, number: int) -> None:
        pass

    def close(self) -> None:
        for session in self._sessions.values():
            session.close()


@pytest.fixture(autouse=True)
def _no_delays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(members, "SECONDS_BETWEEN_REFRESHES", 0.0)
    monkeypatch.setattr(execution, "SECONDS_WITHOUT_WORKER", 0.0)


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> dict[int, object]:
    path = tmp_path_factory.mktemp("undisturbed") / "store.sqlite"
    run_audit(SETTINGS, path, resume=False, say=print, execution=fake_execution)
    return contents(path)


class Auditing:
    """Audits over a fake connection, and what they said."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "store.sqlite"
        self.said: list[str] = []
        self._folder = folder

    def run(self, name: str, **behaviours: Behaviour) -> None:
        (self._folder / name).mkdir()
        connection = FakeConnection(self._folder / name, behaviours)
        options = AuditOptions.of(SETTINGS, name)
        workers = Members(connection, options, self.said.append)  # type: ignore[arg-type]
        try:
            with Store.open_or_create(self.path) as store:
                workers.choose_device()
                there = ClusterExecution(store, connection, options, workers)  # type: ignore[arg-type]
                audit_into(store, SETTINGS, store.newest_run(), self.said.append, lambda *_: nullcontext(there))
        finally:
            connection.close()


@pytest.fixture
def auditing(tmp_path: Path) -> Auditing:
    return Auditing(tmp_path)


def test_repeated_answers_count_once(auditing: Auditing, undisturbed: dict[int, object]) -> None:
    auditing.run("audit", a=honest, b=lambda _, answer: [answer, answer], c=lambda _, answer: [answer] * 3)
    assert contents(auditing.path) == undisturbed


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (WorkerProblem("no space left on device"), "no space left on device"),
        (Introduction({}, ""), "it answered another request"),
        (Executed(()), "it answered for other groups than it was asked for"),
    ],
)
def test_leaves_out_a_worker_with_wrong_answers(
    auditing: Auditing, undisturbed: dict[int, object], answer: Answer, reason: str
) -> None:
    auditing.run("audit", a=lambda _, own: [answer] if isinstance(own, Executed) else [own], b=honest)
    assert contents(auditing.path) == undisturbed
    assert f"worker a is left out: {reason}" in auditing.said


def test_refuses_a_worker_with_other_code(auditing: Auditing, undisturbed: dict[int, object]) -> None:
    def other(_: WorkerMessage, answer: Answer) -> list[Answer]:
        return [Introduction(answer.environment, "other") if isinstance(answer, Introduction) else answer]

    auditing.run("audit", a=other, b=honest)
    assert contents(auditing.path) == undisturbed
    refused = "worker a is left out: its mpsmith is not the one of this machine (install the same everywhere)"
    assert refused in auditing.said


def ends_with(operator: str) -> Behaviour:
    def behave(_: WorkerMessage, answer: Answer) -> list[Answer] | None:
        executed = isinstance(answer, Executed) and any(rows.key.operator == operator for rows in answer.groups)
        return None if executed else [answer]

    return behave


def test_other_workers_do_the_batches_of_lost_ones(auditing: Auditing, undisturbed: dict[int, object]) -> None:
    auditing.run("audit", a=ends_with("op7"), b=ends_with("op40"), c=honest)
    assert contents(auditing.path) == undisturbed
    assert "worker a has gone; its groups go to other workers" in auditing.said


def test_names_the_group_that_ends_every_worker(auditing: Auditing) -> None:
    with pytest.raises(StoppedError, match=r"pretended:held:float32: 3 workers ended or gave up with it"):
        auditing.run("audit", **{name: ends_with("held") for name in "abcd"})


def test_resumes_after_losing_all_workers(auditing: Auditing, undisturbed: dict[int, object]) -> None:
    with pytest.raises(StoppedError, match="no worker left that can take part"):
        auditing.run("first", a=ends_with("op50"))
    auditing.run("second", a=honest)
    assert contents(auditing.path) == undisturbed


def test_a_plan_that_a_worker_refuses_is_the_users_error(auditing: Auditing) -> None:
    def refuses(message: WorkerMessage, answer: Answer) -> list[Answer]:
        return [WorkerProblem("unknown dtype 'x'")] if isinstance(message.request, MakePlan) else [answer]

    with pytest.raises(ClusterError, match="unknown dtype 'x'"):
        auditing.run("audit", a=refuses, b=refuses)
