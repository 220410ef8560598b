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
from mpsmith.audit.running.cluster.devices import device_of
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
from support.pretended_machines import FOLDER
from support.stores import opinfo


@pytest.fixture(autouse=True)
def _pretended(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(tasks, "COMMAND", ("-m", "support.pretended_machines"))
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parents[4]))
    monkeypatch.setattr(tasks, "_sessions", _Sessions())
    yield
    for audit in ("one", "other"):
        tasks._sessions.end(audit)


def options(audit: str = "one") -> AuditOptions:
    return AuditOptions.of(Settings(device=DeviceKind.SIMULATED), audit)


def asked(request: Request, audit: str = "one") -> Answer:
    answer: Answer = messages.answer_in(
        messages.unpacked(tasks.perform(messages.as_text(WorkerMessage(options(audit), request))))
    )
    return answer


def idle() -> list[int]:
    return [session._process.pid for session in tasks._sessions._idle]


def test_a_session_answers_one_batch_after_the_other_and_ends_with_its_audit(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    introduced = asked(Introduce())
    assert isinstance(introduced, Introduction)
    device = device_of(introduced.environment)
    (first,) = idle()
    executed = asked(ExecuteBatch((GroupWork.of(opinfo("relu")), GroupWork.of(opinfo("mode"), (0, 2))), device))
    assert isinstance(executed, Executed)
    assert [(rows.key.operator, rows.cases > 0) for rows in executed.groups] == [("relu", True), ("mode", True)]
    assert executed.groups[1].cases == 2
    assert idle() == [first]

    refused = asked(ExecuteBatch((GroupWork.of(opinfo("relu")),), {**device, "torch": "2.12.0"}))
    assert refused == WorkerProblem("this worker has torch 2.13.0, not 2.12.0")
    assert idle() == []  # what had a problem answers nothing more

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
    busy = threading.Thread(target=lambda: answers.append(asked(ExecuteBatch((GroupWork.of(opinfo("held")),), device))))
    busy.start()
    (tmp_path / "held").read_text()
    asyncio.run(tasks.end_sessions("one"))
    busy.join()
    assert isinstance(answers[0], WorkerProblem)


def test_what_is_no_message_is_a_problem() -> None:
    answer = messages.answer_in(messages.unpacked(tasks.perform("{")))
    assert isinstance(answer, WorkerProblem)
    assert "not a message of this mpsmith" in answer.reason
