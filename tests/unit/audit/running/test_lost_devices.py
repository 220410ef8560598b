"""A worker whose real device computes nothing any more blames no case that did not do it."""

from __future__ import annotations

import signal
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import NoReturn

import pytest
from pebble import ProcessExpired

from mpsmith.audit.model.group import GroupKey
from mpsmith.audit.model.out_of_range import may_write_out_of_range
from mpsmith.audit.model.selection import Settings
from mpsmith.audit.model.verdicts import CaseVerdict, Outcome
from mpsmith.audit.running.device_health import RECYCLED, fault_in
from mpsmith.audit.running.isolated import IsolatedExecution, NoProgress
from mpsmith.audit.running.pending_rows import PendingRows
from mpsmith.audit.running.worker_exit import DEVICE_LOST, exit_of
from mpsmith.audit.running.worker_tasks import MARK, ON_DEVICE, Task
from mpsmith.audit.store.store import Store
from mpsmith.errors import MpsmithError
from support.stores import begun, opinfo


def task_of(store: Store, folder: Path, cautious: bool = False) -> Task:
    recording = begun(store)
    recording.add(opinfo("abs"), done=False)
    (group,) = store.groups(recording.run.id)
    return Task(group.id, group.key, folder / "marker", cautious=cautious)


def after_exit(store: Store, folder: Path, task: Task, code: int) -> tuple[tuple[Task, ...], list[int]]:
    execution = IsolatedExecution(Settings(), store, folder)
    alone: list[int] = []
    execution._judge_alone = lambda task, position: alone.append(position)  # type: ignore[method-assign]
    task.marker.write_bytes(MARK.pack(task.group, 3, ON_DEVICE))
    left = execution._after_exit(None, (task,), ProcessExpired("gone", code, 4711), {}, NoProgress())  # type: ignore[arg-type]
    return left, alone


def test_a_lost_device_blames_no_case_at_first(store: Store, tmp_path: Path) -> None:
    (left,), alone = after_exit(store, tmp_path, task_of(store, tmp_path), DEVICE_LOST)
    assert (left.cautious, alone) == (True, [])
    assert store.positions(left.group) == set()


def test_the_case_after_which_it_is_lost_again_is_judged_alone(store: Store, tmp_path: Path) -> None:
    _, alone = after_exit(store, tmp_path, task_of(store, tmp_path, cautious=True), DEVICE_LOST)
    assert alone == [3]


@pytest.mark.parametrize("announces", [True, False])
def test_a_case_that_never_began_is_not_blamed_for_a_device_that_hangs(
    announces: bool, store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    task = task_of(store, tmp_path)

    def ended(*arguments: object, **options: object) -> NoReturn:
        if announces:
            task.marker.write_bytes(MARK.pack(task.group, 3, ON_DEVICE))
        raise ProcessExpired("gone", -signal.SIGALRM, 4711)

    pool = nullcontext(SimpleNamespace(schedule=ended))
    execution = IsolatedExecution(Settings(), store, tmp_path)
    monkeypatch.setattr(execution, "_fresh_processes", lambda mode, workers: pool)
    if announces:
        execution._judge_alone(task, 3)
    else:
        with pytest.raises(MpsmithError, match=r"abs.*:3: the mps device does not compute in a new process, time-out"):
            execution._judge_alone(task, 3)
    assert store.positions(task.group) == ({3} if announces else set())


def test_the_exit_of_a_worker_without_its_device_has_its_own_words(tmp_path: Path) -> None:
    assert str(exit_of(ProcessExpired("gone", DEVICE_LOST, 4711), tmp_path)) == "the device computes nothing afterwards"


def test_a_recycled_worker_goes_on(store: Store, tmp_path: Path) -> None:
    (left,), alone = after_exit(store, tmp_path, task_of(store, tmp_path), RECYCLED)
    assert (left.cautious, alone) == (False, [])


def test_rows_are_not_written_if_the_device_is_lost(store: Store) -> None:
    def lost() -> None:
        raise RuntimeError("lost")

    written: list[int] = []
    pending = PendingRows(store, lost)
    pending.add(lambda: written.append(1))
    with pytest.raises(RuntimeError, match="lost"):
        pending.write()
    assert written == []


def test_wrong_cases_and_those_without_memory_are_judged_again(store: Store, tmp_path: Path) -> None:
    task = task_of(store, tmp_path)
    outcomes = [
        Outcome(CaseVerdict.PASSED, "forward", ""),
        Outcome(CaseVerdict.WRONG, "forward", "differs"),
        Outcome(CaseVerdict.CRASH, "forward", "SIGABRT: failed assertion"),
        Outcome(CaseVerdict.CRASH, "forward", "out of memory: MPS backend out of memory"),
    ]
    for position, outcome in enumerate(outcomes):
        store.add_case(task.group, position, outcome, "")
    store.mark_done(task.group)
    assert store.reopen([task.group]) == {task.group: frozenset({1, 3})}
    assert store.positions(task.group) == {0, 2}
    assert not store.is_done(task.group)


def test_metals_words_are_explained() -> None:
    text = "Caused GPU Timeout Error (00000002:kIOGPUCommandBufferCallbackErrorTimeout)"
    assert fault_in(text).startswith("macOS ended a kernel that ran for too long")
    assert fault_in("all is well") == ""


@pytest.mark.parametrize(
    ("source", "operator", "last"),
    [
        ("arguments", "aten::put_", True),
        ("errors", "gather", True),
        ("opinfo", "gather", False),
        ("errors", "abs", False),
    ],
)
def test_groups_with_indices_out_of_range_are_known(source: str, operator: str, last: bool) -> None:
    assert may_write_out_of_range(GroupKey(source, operator, "", "float32", "fallback")) is last
