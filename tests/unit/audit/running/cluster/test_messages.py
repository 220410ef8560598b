"""What crosses the network: the same data at the other end, and nothing but data."""

from __future__ import annotations

import math

import pytest

from mpsmith.audit.model.selection import Samples, Settings
from mpsmith.audit.running.cluster import messages
from mpsmith.audit.running.cluster.messages import (
    AuditOptions,
    ClusterError,
    ExecuteBatch,
    Executed,
    GroupWork,
    Introduce,
    Introduction,
    ModuleProbed,
    Planned,
    ProbeModule,
    WorkerMessage,
    WorkerProblem,
)
from mpsmith.audit.store.group_rows import GroupRows
from mpsmith.errors import MpsmithError
from support.stores import opinfo

OPTIONS = AuditOptions.of(Settings(samples=Samples.QUICK, ops=("relu",), timeout=7.5), "name")
CASE = (0, "passed", "forward", "", "[]", "close", math.inf, 1, 0.25, "(float32[2])", None)


@pytest.mark.parametrize(
    "request_",
    [
        Introduce(),
        ExecuteBatch((GroupWork(opinfo("relu")), GroupWork(opinfo("mode"), (0, 5))), ("sort",)),
        ProbeModule(("torch.mps.a",)),
    ],
)
def test_messages_survive_the_round_trip(request_: messages.Request) -> None:
    message = WorkerMessage(OPTIONS, request_)
    text = messages.as_text(message)
    assert "\n" not in text
    assert messages.read_message(text) == message


def test_a_session_has_the_settings_of_the_audit_and_one_process() -> None:
    settings = messages.read_message(messages.as_text(WorkerMessage(OPTIONS, Introduce()))).options.as_settings()
    assert (settings.samples, settings.ops, settings.timeout, settings.workers) == (Samples.QUICK, ("relu",), 7.5, 1)


@pytest.mark.parametrize(
    "answer",
    [
        Introduction({"torch": "2.13.0", "variables": {"A": "b"}}, "code"),
        Planned((opinfo("relu"),), {}, ("sort",)),
        Executed((GroupRows(opinfo("relu"), {"cases": [CASE]}),), ("sort",)),
        ModuleProbed((("torch.mps.a", "works", ""),)),
        WorkerProblem('a "reason"\u2028'),
    ],
)
def test_answers_survive_the_round_trip(answer: messages.Answer) -> None:
    text = messages.as_text(answer)
    assert messages.read_answer(text) == answer
    assert messages.is_problem(text) is isinstance(answer, WorkerProblem)


@pytest.mark.parametrize(
    "text", ["", "{", "[]", '{"answer":"executed"}', '{"answer":"x"}', '{"reason":1,"answer":"problem"}']
)
def test_rejects_malformed_answers(text: str) -> None:
    with pytest.raises(ClusterError, match=r"not an answer of this mpsmith \(install the same everywhere\)"):
        messages.read_answer(text)


def test_rejects_malformed_rows() -> None:
    for tables in ({"runs": [CASE]}, {"cases": [CASE[:-1]]}, {"cases": [(0, "well", *CASE[2:])]}):
        answer = Executed((GroupRows(opinfo("relu"), tables),))
        with pytest.raises(MpsmithError, match=r"not an answer of this mpsmith|there is no verdict"):
            messages.read_answer(messages.as_text(answer))
