"""The processes that a Dask worker keeps for an audit: one for a thread, gone with the audit."""

from __future__ import annotations

import asyncio
import os
import signal
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from mpsmith.audit.model.selection import Settings
from mpsmith.audit.running.cluster import messages, tasks
from mpsmith.audit.running.cluster.messages import (
    Answer,
    AuditOptions,
    ExecuteBatch,
    Executed,
    GroupWork,
    Introduce,
    Introduction,
    Request,
    WorkerMessage,
    WorkerProblem,
)
from mpsmith.audit.running.cluster.tasks import _Sessions
from mpsmith.simulator.opening import DeviceKind
from support.fake_machines import FOLDER, FULL
from support.stores import opinfo


@pytest.fixture(autouse=True)
def _pretended(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(tasks, "COMMAND", ("-m", "support.fake_machines"))
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parents[4]))
    monkeypatch.setattr(tasks, "_sessions", _Sessions())
    yield
    for audit in ("one", "other"):
        tasks._sessions.end(audit)


def options(audit: str = "one") -> AuditOptions:
    return AuditOptions.of(Settings(device=DeviceKind.SIMULATED), audit)


def asked(request: Request, audit: str = "one") -> Answer:
    return messages.read_answer(tasks.perform(messages.as_text(WorkerMessage(options(audit), request))))


def idle() -> list[int]:
    return [session._process.pid for session in tasks._sessions._idle]


def test_sessions_stay_for_an_audit_and_end_with_it(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    introduced = asked(Introduce())
    assert isinstance(introduced, Introduction)
    (first,) = idle()
    executed = asked(ExecuteBatch((GroupWork(opinfo("relu")), GroupWork(opinfo("mode"), (0, 2)))))
    assert isinstance(executed, Executed)
    assert [(rows.key.operator, rows.cases > 0) for rows in executed.groups] == [("relu", True), ("mode", True)]
    assert executed.groups[1].cases == 2
    assert idle() == [first]

    monkeypatch.setenv(FULL, "1")
    refused = asked(ExecuteBatch((GroupWork(opinfo("relu")),)), "other")
    monkeypatch.delenv(FULL)
    assert refused == WorkerProblem("OSError: [Errno 28] No space left on device")
    assert idle() == []  # a session ends after a failed request

    asked(Introduce())
    (second,) = idle()
    os.kill(second, signal.SIGKILL)
    dead = asked(Introduce())
    assert isinstance(dead, WorkerProblem)
    assert "the session has ended" in dead.reason

    asked(Introduce())
    (third,) = idle()
    asked(Introduce(), "other")  # ends what waits of another audit
    (fourth,) = idle()
    assert fourth != third
    with pytest.raises(ProcessLookupError):
        os.kill(third, 0)

    for pipe in ("held", "go"):
        os.mkfifo(tmp_path / pipe)
    tasks._sessions.end("other")
    monkeypatch.setenv(FOLDER, str(tmp_path))
    answers: list[Answer] = []
    busy = threading.Thread(target=lambda: answers.append(asked(ExecuteBatch((GroupWork(opinfo("held")),)))))
    busy.start()
    (tmp_path / "held").read_text()
    asyncio.run(tasks.end_sessions("one"))
    busy.join()
    assert isinstance(answers[0], WorkerProblem)


def test_rejects_malformed_messages() -> None:
    answer = messages.read_answer(tasks.perform("{"))
    assert isinstance(answer, WorkerProblem)
    assert "not a message of this mpsmith" in answer.reason
