"""A whole audit over a line that loses, delays and repeats what it carries, to workers that end: the store is the same.

The line is pretended here, and so are the machines; test_audits_on_a_cluster.py has Dask's own.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from threading import Event

import pytest

from mpsmith.audit.model.selection import Settings
from mpsmith.audit.running.cluster import execution, fleet, messages
from mpsmith.audit.running.cluster.assignments import STRIKES
from mpsmith.audit.running.cluster.connection import Delivery, Inbox
from mpsmith.audit.running.cluster.errors import ClusterError, StoppedError
from mpsmith.audit.running.cluster.execution import ClusterExecution
from mpsmith.audit.running.cluster.fleet import Fleet
from mpsmith.audit.running.cluster.messages import AuditOptions, Executed, Introduction, MakePlan, WorkerProblem
from mpsmith.audit.running.cluster.session import Session
from mpsmith.audit.running.runner import audit_into, run_audit
from mpsmith.audit.store.group_rows import GroupRows
from mpsmith.audit.store.records import Run
from mpsmith.audit.store.store import Store
from mpsmith.simulator.opening import DeviceKind
from support.pretended_machines import PretendedExecution, contents, pretended_here

SETTINGS = Settings(device=DeviceKind.SIMULATED)
DEVICE_TORCH = "2.13.0"
# What a worker does with a message: the answers that it gives now.
Behaviour = Callable[[messages.WorkerMessage, messages.Answer], list[messages.Answer]]


def honest(_: messages.WorkerMessage, answer: messages.Answer) -> list[messages.Answer]:
    return [answer]


class PretendedLine:
    """Stands in for a connection: machines in this process, asked as soon as a message is sent."""

    def __init__(self, folder: Path, behaviours: dict[str, Behaviour]) -> None:
        self._folder = folder
        self._behaviours = behaviours
        self._sessions: dict[str, Session] = {}
        self.here = dict.fromkeys(behaviours, 1)
        self.delayed: list[tuple[Inbox, Delivery]] = []

    def workers(self) -> dict[str, int]:
        for inbox, delivery in self.delayed:
            inbox.put(delivery)
        self.delayed.clear()
        return dict(self.here)

    def send(self, worker: str, number: int, text: str, inbox: Inbox) -> None:
        if worker not in self.here:
            return
        message = messages.message_in(text)
        if worker not in self._sessions:
            (self._folder / worker).mkdir()
            self._sessions[worker] = Session(message.options.as_settings(), self._folder / worker, PretendedExecution)
        answer = self._sessions[worker].answer(message.request)
        for each in self._behaviours[worker](message, answer):
            inbox.put(Delivery(worker, number, messages.packed(messages.as_text(each))))

    def take_back(self, worker: str, number: int) -> None:
        pass

    def close(self) -> None:
        for session in self._sessions.values():
            session.close()


@pytest.fixture(autouse=True)
def _at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fleet, "SECONDS_BETWEEN_LOOKS", 0.0)
    monkeypatch.setattr(execution, "SECONDS_BETWEEN_ROUNDS", 0.0)
    monkeypatch.setattr(execution, "SECONDS_ALONE", 0.0)


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> dict[int, object]:
    path = tmp_path_factory.mktemp("undisturbed") / "store.sqlite"
    run_audit(SETTINGS, path, resume=False, say=print, execution=pretended_here)
    return contents(path)


class Auditing:
    """An audit over a pretended line, and what it said."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "store.sqlite"
        self.said: list[str] = []
        self._folder = folder

    def run(self, behaviours: dict[str, Behaviour], prepare: Callable[[PretendedLine], None] = lambda _: None) -> Run:
        line = PretendedLine(self._folder, behaviours)
        prepare(line)
        environment = PretendedExecution(SETTINGS, None, self._folder).environment()  # type: ignore[arg-type]
        members = Fleet(
            line,  # type: ignore[arg-type]
            AuditOptions.of(SETTINGS, "name"),
            fleet.devices.device_of(environment),
            self.said.append,
        )
        try:
            with Store.open_or_create(self.path) as store:
                where = ClusterExecution(store, members, Event(), patience=0.0)
                return audit_into(store, SETTINGS, store.newest_run(), self.said.append, lambda *_: nullcontext(where))
        finally:
            line.close()


@pytest.fixture
def auditing(tmp_path: Path) -> Auditing:
    return Auditing(tmp_path)


def test_a_cluster_stores_what_one_machine_stores(auditing: Auditing, undisturbed: dict[int, object]) -> None:
    auditing.run({"a": honest, "b": honest, "c": honest})
    assert contents(auditing.path) == undisturbed


def test_answers_that_come_twice_count_once(auditing: Auditing, undisturbed: dict[int, object]) -> None:
    auditing.run({"a": lambda _, answer: [answer, answer], "b": lambda _, answer: [answer] * 3})
    assert contents(auditing.path) == undisturbed


def test_a_worker_that_is_silent_has_its_batches_done_by_others(
    auditing: Auditing, undisturbed: dict[int, object]
) -> None:
    def silent(_: messages.WorkerMessage, answer: messages.Answer) -> list[messages.Answer]:
        return [answer] if isinstance(answer, Introduction) else []

    auditing.run({"a": silent, "b": honest})
    assert contents(auditing.path) == undisturbed


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (WorkerProblem("no space left on device"), "no space left on device"),
        (Introduction({}, ""), "it answered something else than it was asked for"),
        (Executed((), 0.0), "it answered for other groups than it was asked for"),
        (Executed((GroupRows(messages.GroupKey("a", "b", "", "c", "d"), {"runs": []}),), 0.0), "not an answer"),
    ],
)
def test_a_worker_that_answers_nonsense_is_left_out(
    auditing: Auditing, undisturbed: dict[int, object], answer: messages.Answer, reason: str
) -> None:
    def bad(_: messages.WorkerMessage, honest_answer: messages.Answer) -> list[messages.Answer]:
        return [answer] if isinstance(honest_answer, Executed) else [honest_answer]

    auditing.run({"a": bad, "b": honest})
    assert contents(auditing.path) == undisturbed
    assert [text for text in auditing.said if "worker a is left out" in text and reason in text]


def test_a_worker_with_other_code_is_refused(auditing: Auditing, undisturbed: dict[int, object]) -> None:
    def other(_: messages.WorkerMessage, answer: messages.Answer) -> list[messages.Answer]:
        return [Introduction(answer.environment, "other") if isinstance(answer, Introduction) else answer]

    auditing.run({"a": other, "b": honest})
    assert contents(auditing.path) == undisturbed
    assert (
        "worker a is left out: its mpsmith is not the one of this machine (install the same everywhere)"
        in auditing.said
    )


@pytest.mark.parametrize("seed", range(4))
def test_a_line_that_loses_delays_and_repeats(auditing: Auditing, undisturbed: dict[int, object], seed: int) -> None:
    chance = random.Random(seed)
    lines: list[PretendedLine] = []

    def unreliable(worker: str) -> Behaviour:
        def behave(_: messages.WorkerMessage, answer: messages.Answer) -> list[messages.Answer]:
            line = lines[0]
            fate = chance.random()
            if fate < 0.2 and 6 - len(line.here) < STRIKES - 1 and isinstance(answer, Executed):
                del line.here[worker]  # it ends with the batch; as many as end with one batch would end the audit
                return []
            return [answer] if fate < 0.6 else [answer, answer]

        return behave

    auditing.run({name: unreliable(name) for name in "abcdef"}, lines.append)
    assert contents(auditing.path) == undisturbed
    assert len(lines[0].here) < 6


def test_what_ends_every_worker_is_named(auditing: Auditing) -> None:
    lines: list[PretendedLine] = []

    def ends_of_held(worker: str) -> Behaviour:
        def behave(message: messages.WorkerMessage, answer: messages.Answer) -> list[messages.Answer]:
            if isinstance(answer, Executed) and any(rows.key.operator == "held" for rows in answer.groups):
                del lines[0].here[worker]
                return []
            return [answer]

        return behave

    with pytest.raises(StoppedError, match=r"pretended:held:float32: 3 workers ended or gave up with it"):
        auditing.run({name: ends_of_held(name) for name in "abcd"}, lines.append)


def test_an_audit_without_a_worker_stops_and_is_gone_on_with(
    auditing: Auditing, undisturbed: dict[int, object]
) -> None:
    lines: list[PretendedLine] = []

    def ends_soon(_: messages.WorkerMessage, answer: messages.Answer) -> list[messages.Answer]:
        if isinstance(answer, Executed) and len(lines) > 3:
            lines[0].here.clear()
            return []
        lines.append(lines[0])
        return [answer]

    with pytest.raises(StoppedError, match="no worker left that can take part"):
        auditing.run({"a": ends_soon}, lines.append)
    for folder in auditing.path.parent.iterdir():
        if folder.is_dir():
            folder.rename(folder.with_name("before"))
    auditing.run({"a": honest})
    assert contents(auditing.path) == undisturbed


def test_what_no_worker_can_plan_is_the_users_error(auditing: Auditing) -> None:
    def refuses(message: messages.WorkerMessage, answer: messages.Answer) -> list[messages.Answer]:
        return [WorkerProblem("unknown dtype 'x'")] if isinstance(message.request, MakePlan) else [answer]

    with pytest.raises(ClusterError, match="unknown dtype 'x'"):
        auditing.run({"a": refuses, "b": refuses})
