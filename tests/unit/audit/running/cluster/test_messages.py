"""What crosses the network: the same data at the other end, and nothing but data."""

from __future__ import annotations

import math
import zlib

import pytest

from mpsmith.audit.model.selection import Samples, Settings
from mpsmith.audit.running.cluster import messages
from mpsmith.audit.running.cluster.errors import ClusterError
from mpsmith.audit.running.cluster.messages import (
    AuditOptions,
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
        ExecuteBatch(
            (GroupWork.of(opinfo("relu")), GroupWork.of(opinfo("mode"), (0, 5))), {"torch": "2.13.0"}, ("sort",)
        ),
        ProbeModule({}, ("torch.mps.a",)),
    ],
)
def test_a_message_is_the_same_at_the_other_end(request_: messages.Request) -> None:
    message = WorkerMessage(OPTIONS, request_)
    text = messages.as_text(message)
    assert "\n" not in text
    assert messages.message_in(text) == message


def test_the_settings_of_a_session_are_those_of_the_audit_with_one_process() -> None:
    settings = messages.message_in(messages.as_text(WorkerMessage(OPTIONS, Introduce()))).options.as_settings()
    assert (settings.samples, settings.ops, settings.timeout, settings.workers) == (Samples.QUICK, ("relu",), 7.5, 1)


@pytest.mark.parametrize(
    "answer",
    [
        Introduction({"torch": "2.13.0", "variables": {"A": "b"}}, "code"),
        Planned((opinfo("relu"),), {}, ("sort",)),
        Executed((GroupRows(opinfo("relu"), {"cases": [CASE]}),), 1.5, ("sort",)),
        ModuleProbed((("torch.mps.a", "works", ""),)),
        WorkerProblem('a "reason"\u2028'),
    ],
)
def test_an_answer_is_the_same_at_the_other_end(answer: messages.Answer) -> None:
    text = messages.as_text(answer)
    assert messages.answer_in(messages.unpacked(messages.packed(text))) == answer
    assert messages.is_problem(text) is isinstance(answer, WorkerProblem)


@pytest.mark.parametrize(
    "text", ["", "{", "[]", '{"answer":"executed"}', '{"answer":"x"}', '{"reason":1,"answer":"problem"}']
)
def test_what_is_no_answer_is_refused(text: str) -> None:
    with pytest.raises(ClusterError, match=r"not an answer of this mpsmith \(install the same everywhere\)"):
        messages.answer_in(text)


def test_rows_that_are_none_are_refused() -> None:
    for tables in ({"runs": [CASE]}, {"cases": [CASE[:-1]]}, {"cases": [(0, "well", *CASE[2:])]}):
        answer = Executed((GroupRows(opinfo("relu"), tables),), 1.0)
        with pytest.raises(MpsmithError, match=r"not an answer of this mpsmith|no such verdict"):
            messages.answer_in(messages.as_text(answer))


@pytest.mark.parametrize("counts", ["[2]", "[0]", "[1,0]", "[]", "[-1]"])
def test_columns_that_do_not_fit_together_are_refused(counts: str) -> None:
    text = messages.as_text(Executed((GroupRows(opinfo("relu"), {"cases": [CASE]}),), 1.0))
    assert '"cases":[[1],' in text
    with pytest.raises(ClusterError, match=r"do not fit together|not an answer of this mpsmith"):
        messages.answer_in(text.replace('"cases":[[1],', f'"cases":[{counts},'))


def test_rows_of_groups_are_told_apart() -> None:
    rows = [(*CASE[:-1], grade) for grade in ("a", "b", "c")]
    groups = (
        GroupRows(opinfo("relu"), {"cases": rows[:2], "called_overloads": [("aten::relu", 1)]}),
        GroupRows(opinfo("mode"), {}),
        GroupRows(opinfo("sort"), {"cases": rows[2:]}),
    )
    assert messages.answer_in(messages.as_text(Executed(groups, 1.0))) == Executed(groups, 1.0)


def test_a_damaged_or_huge_answer_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    packed = messages.packed("x" * 1000)
    for data in (b"", b"none", packed[:-1]):
        with pytest.raises(ClusterError, match="a damaged answer"):
            messages.unpacked(data)
    monkeypatch.setattr(messages, "MOST_BYTES", 999)
    with pytest.raises(ClusterError, match="too large"):
        messages.unpacked(zlib.compress(b"x" * 1000))
