"""Who gets which items, and what becomes of those that do not come back."""

from __future__ import annotations

import pytest

from mpsmith.audit.running.cluster.assignments import (
    BATCH_SECONDS,
    FIRST_ITEMS,
    MOST_ITEMS,
    SHORTEST_SECONDS,
    STRIKES,
    Assignments,
    Batch,
)

PATIENCE = 10.0


def given(work: Assignments, worker: str, now: float = 0.0, threads: int = 1) -> Batch:
    batch = work.next_batch(worker, threads, now)
    assert batch is not None
    return batch


def test_everything_is_given_once_and_then_done() -> None:
    work = Assignments(range(100), PATIENCE)
    seen: list[int] = []
    while (batch := work.next_batch("a", 2, 0.0)) is not None:
        seen.extend(batch.items)
        assert not work.done
        work.answered(batch.number, batch.items, 0.001)
    assert seen == list(range(100))
    assert work.done


def test_batches_take_about_the_same_time_and_get_smaller_towards_the_end() -> None:
    work = Assignments(range(1000), PATIENCE)
    first = given(work, "a")
    assert len(first.items) == FIRST_ITEMS
    work.answered(first.number, first.items, FIRST_ITEMS * 0.1)
    assert len(given(work, "a").items) == round(BATCH_SECONDS / 0.1)
    assert len(given(work, "a", threads=50).items) == 10  # 916 left, for 100 batches
    assert len(given(work, "a", threads=400).items) == round(SHORTEST_SECONDS / 0.1)
    fast = Assignments(range(10_000), PATIENCE)
    first = given(fast, "a")
    fast.answered(first.number, first.items, 0.0)
    assert len(given(fast, "a").items) == MOST_ITEMS


def test_one_slow_start_does_not_make_all_batches_small() -> None:
    work = Assignments(range(10_000), PATIENCE)
    for batch in range(10):
        items = given(work, "a").items
        work.answered(batch + 1, items, len(items) * 0.01 + (8.0 if batch == 0 else 0.0))
    assert len(items) > 0.5 * BATCH_SECONDS / 0.01


def test_what_a_worker_failed_of_is_given_alone_and_not_for_ever() -> None:
    work = Assignments(range(4), PATIENCE)
    lost = given(work, "a")
    assert lost.items == (0, 1)
    assert work.failed(lost.number) == []
    assert work.held_by("a") == 0
    again, other = given(work, "b"), given(work, "c")
    assert (again.items, other.items) == ((0,), (1,))
    assert work.failed(again.number) == []
    last = given(work, "c")
    assert last.items == (0,)
    assert STRIKES == 3
    assert work.failed(last.number) == [0]


def test_late_items_are_given_to_another_worker_only_when_nothing_else_is_left() -> None:
    work = Assignments(range(2), PATIENCE)
    frozen = given(work, "a", now=0.0)
    rest = given(work, "b", now=PATIENCE + 1)
    assert (frozen.items, rest.items) == ((0,), (1,))
    work.answered(rest.number, rest.items, 0.1)
    assert work.next_batch("a", 1, PATIENCE + 1) is None  # it has it
    assert work.next_batch("b", 1, PATIENCE - 1) is None  # it is not late yet
    copy = given(work, "b", now=PATIENCE)
    assert copy.items == (0,)
    assert work.next_batch("c", 1, PATIENCE + 1) is None  # somebody has begun it just now
    third = given(work, "c", now=2 * PATIENCE)
    assert third.items == (0,)
    work.answered(third.number, third.items, 0.1)
    assert work.done


def test_an_answer_that_comes_twice_or_late_changes_nothing() -> None:
    work = Assignments(range(2), PATIENCE)
    frozen = given(work, "a")
    other = given(work, "b")
    work.answered(other.number, other.items, 0.1)
    copy = given(work, "b", now=PATIENCE)
    work.answered(copy.number, copy.items, 0.1)
    assert work.done
    work.answered(frozen.number, frozen.items, 99.0)
    work.answered(frozen.number, frozen.items, 99.0)
    assert work.failed(frozen.number) == []
    assert work.done
    assert work.next_batch("a", 1, 100.0) is None


def test_a_copy_that_fails_does_not_bring_back_what_is_done() -> None:
    work = Assignments(range(1), PATIENCE)
    first = given(work, "a")
    copy = given(work, "b", now=PATIENCE)
    assert work.failed(first.number) == []
    assert work.next_batch("c", 1, PATIENCE) is None  # b still has it
    work.answered(copy.number, copy.items, 0.1)
    assert work.done


def test_an_answer_for_a_part_of_a_batch_leaves_the_rest_to_do() -> None:
    work = Assignments(range(4), PATIENCE)
    batch = given(work, "a")
    work.answered(batch.number, [0], 0.1)
    assert given(work, "a").items[0] == 1
    assert not work.done


@pytest.mark.parametrize("workers", [1, 3, 17])
def test_every_batch_lost_once_still_ends(workers: int) -> None:
    work = Assignments(range(50), PATIENCE)
    lost: set[int] = set()
    done: list[int] = []
    turn = 0
    while not work.done:
        turn += 1
        batch = work.next_batch(f"w{turn % workers}", workers, float(turn))
        assert batch is not None
        if lost.isdisjoint(batch.items):
            lost.update(batch.items)
            assert work.failed(batch.number) == []
        else:
            done.extend(batch.items)
            work.answered(batch.number, batch.items, 0.1)
    assert sorted(done) == list(range(50))
