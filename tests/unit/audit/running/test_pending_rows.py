"""Rows of a worker wait for a common transaction, and none is lost or written twice."""

from __future__ import annotations

import sqlite3
from functools import partial

import pytest

from mpsmith.audit.model.verdicts import CaseVerdict, Outcome
from mpsmith.audit.running import pending_rows
from mpsmith.audit.running.pending_rows import PendingRows
from mpsmith.audit.store.connection import StoreError
from mpsmith.audit.store.store import Store
from support.stores import begun, opinfo

PASSED = Outcome(CaseVerdict.PASSED, "forward", "")


def group_of(store: Store) -> int:
    recording = begun(store)
    recording.add(opinfo("sort"), done=False)
    return store.groups(recording.run.id)[-1].id


def committed_cases(store: Store) -> int:
    """How many cases another process sees."""
    with sqlite3.connect(store.path) as other:
        (count,) = other.execute("SELECT count(*) FROM cases").fetchone()
    return int(count)


def test_other_processes_read_rows_after_a_write(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pending_rows, "LONGEST_WAIT", 1e9)
    group = group_of(store)
    pending = PendingRows(store)
    for position in range(3):
        pending.add(partial(store.add_case, group, position, PASSED, ""))
    pending.add(partial(store.mark_done, group))
    assert committed_cases(store) == 0
    pending.write()
    assert committed_cases(store) == 3
    assert store.is_done(group)
    pending.write()
    assert store.positions(group) == {0, 1, 2}


def test_rows_do_not_wait_for_ever(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pending_rows, "LONGEST_WAIT", -1.0)
    group = group_of(store)
    PendingRows(store).add(partial(store.add_case, group, 0, PASSED, ""))
    assert committed_cases(store) == 1


def test_a_failed_row_rolls_the_transaction_back(store: Store) -> None:
    group = group_of(store)

    def write_and_fail() -> None:
        with store.transaction():
            store.add_case(group, 0, PASSED, "")
            raise RuntimeError("no")

    with pytest.raises(RuntimeError, match="no"):
        write_and_fail()
    assert committed_cases(store) == 0
    store.add_case(group, 1, PASSED, "")
    assert committed_cases(store) == 1


def test_a_transaction_that_reads_first_can_still_write(store: Store) -> None:
    group = group_of(store)
    with Store.open_to_add(store.path) as other:
        with store.transaction():
            assert store.positions(group) == set()  # from here on, rows of another process would be in the way
            other._connection.execute("PRAGMA busy_timeout=0")
            with pytest.raises(StoreError, match="locked"):
                other.add_case(group, 1, PASSED, "")
            store.add_case(group, 0, PASSED, "")
        other.add_case(group, 1, PASSED, "")
    assert store.positions(group) == {0, 1}
