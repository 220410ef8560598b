"""Groups go to a worker several at a time; a death costs one case of one of them."""

from __future__ import annotations

from pathlib import Path

import pytest
from pebble import ProcessExpired

from mpsmith.audit.model.selection import Settings
from mpsmith.audit.model.verdicts import CaseVerdict, Outcome
from mpsmith.audit.running.isolated import Batch, IsolatedExecution, size_of_batch
from mpsmith.audit.running.worker_tasks import MAKING_SAMPLES, MARK, ON_CPU, ON_DEVICE, Task
from mpsmith.audit.store.store import Store
from support.stores import begun, opinfo

PASSED = Outcome(CaseVerdict.PASSED, "forward", "")


class Counted:
    def __init__(self) -> None:
        self.cases = 0
        self.groups = 0
        self.crashes = 0

    def advance(self, cases: int, *, group_done: bool = True, crashed: bool = False) -> None:
        self.cases += cases
        self.groups += group_done
        self.crashes += crashed


def batch_of(store: Store, folder: Path, *operators: str) -> Batch:
    recording = begun(store)
    for operator in operators:
        recording.add(opinfo(operator), done=False)
    groups = store.groups(recording.run.id)
    return tuple(Task(group.id, group.key, folder / "marker") for group in groups)


def after_death(store: Store, folder: Path, batch: Batch) -> tuple[Batch, Counted]:
    execution = IsolatedExecution(Settings(), store, folder)
    execution._attribute_crash = lambda *_: None  # type: ignore[method-assign]
    counted = Counted()
    expired = ProcessExpired("gone", -11, 4711)
    return execution._after_exit(None, batch, expired, {}, counted), counted  # type: ignore[arg-type]


def finish(store: Store, group: int, cases: int) -> None:
    for position in range(cases):
        store.add_case(group, position, PASSED, "")
    store.mark_done(group)


def test_skips_recorded_cases(store: Store, tmp_path: Path) -> None:
    batch = batch_of(store, tmp_path, "abs", "exp", "sort")
    finish(store, batch[0].group, 4)
    (tmp_path / "marker").write_bytes(MARK.pack(batch[1].group, 2, ON_DEVICE))
    left, counted = after_death(store, tmp_path, batch)
    assert left == batch[1:]
    assert (counted.groups, counted.cases, counted.crashes) == (1, 5, 1)
    (crashed,) = store.cases(store.latest_run().id, "c.verdict = 'crash'")
    assert (crashed.group.operator, crashed.position) == ("exp", 2)


def test_a_mark_of_a_finished_group_is_ignored(store: Store, tmp_path: Path) -> None:
    batch = batch_of(store, tmp_path, "abs", "exp")
    finish(store, batch[0].group, 4)
    (tmp_path / "marker").write_bytes(MARK.pack(batch[0].group, 3, ON_DEVICE))
    left, _ = after_death(store, tmp_path, batch)
    assert left == batch[1:]
    assert store.positions(batch[1].group) == set()


def test_crashing_samples_end_only_their_group(store: Store, tmp_path: Path) -> None:
    batch = batch_of(store, tmp_path, "abs", "exp", "sort")
    (tmp_path / "marker").write_bytes(MARK.pack(batch[0].group, MAKING_SAMPLES, ON_CPU))
    left, counted = after_death(store, tmp_path, batch)
    assert left == batch[1:]
    assert counted.groups == 1


def test_an_exit_after_the_last_group_leaves_no_groups(store: Store, tmp_path: Path) -> None:
    batch = batch_of(store, tmp_path, "abs")
    finish(store, batch[0].group, 1)
    assert after_death(store, tmp_path, batch)[0] == ()


@pytest.mark.parametrize(("waiting", "workers", "size"), [(10_000, 2, 8), (40, 2, 5), (7, 2, 1), (1, 8, 1), (16, 1, 8)])
def test_batches_get_smaller_towards_the_end(waiting: int, workers: int, size: int) -> None:
    assert size_of_batch(waiting, workers) == size
