"""The results store keeps what was found, refuses what is not its own, and survives bad disks."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from mpsmith.audit.findings.store import Store, StoreError
from mpsmith.audit.findings.tally import tally
from mpsmith.audit.group import GroupKey
from mpsmith.audit.verdicts import CaseVerdict, Outcome

KEY = GroupKey("opinfo", "nn.functional.softshrink", "", "float32", "fallback")
ENVIRONMENT = {"simulated": True, "torch": "2.13.0"}


@pytest.fixture
def store(tmp_path: Path):
    with Store.create(tmp_path / "store.sqlite") as store:
        yield store


def planned(store: Store) -> tuple[int, int]:
    run = store.begin_run({"seed": 0}, ENVIRONMENT)
    store.plan(run.id, [KEY])
    return run.id, store.groups(run.id)[0].id


def test_a_case_comes_back_as_it_went_in(store: Store) -> None:
    run, group = planned(store)
    outcome = Outcome(CaseVerdict.WRONG, "backward", "differs", ("aten::mode",), "values", 3.5, True, 0.25)
    store.add_case(group, 7, outcome, "(float32[3])")
    (case,) = store.cases(run)
    assert (case.group, case.position, case.outcome, case.inputs) == (KEY, 7, outcome, "(float32[3])")
    assert case.label == "opinfo:nn.functional.softshrink:float32:7"
    assert store.case(case.id) == (store.run(run), case)
    assert store.positions(group) == {7}


def test_a_finished_case_is_never_overwritten(store: Store) -> None:
    run, group = planned(store)
    store.add_case(group, 0, Outcome(CaseVerdict.CRASH), "")
    store.add_case(group, 0, Outcome(CaseVerdict.PASSED), "")
    assert [case.outcome.verdict for case in store.cases(run)] == [CaseVerdict.CRASH]


def test_planning_twice_changes_nothing(store: Store) -> None:
    run, group = planned(store)
    store.mark_done(group)
    store.plan(run, [KEY])
    assert [(g.id, g.done) for g in store.groups(run)] == [(group, True)]


def test_a_run_is_unfinished_until_it_is_finished(store: Store) -> None:
    run, _ = planned(store)
    assert store.latest_run().finished is None
    store.finish_run(run)
    assert store.latest_run().finished is not None
    assert store.latest_run().simulated


def test_an_outermost_call_stays_outermost(store: Store) -> None:
    run, group = planned(store)
    store.add_witnesses(group, {"aten::add.Tensor": True})
    store.add_witnesses(group, {"aten::add.Tensor": False, "aten::empty": False})
    assert store.witnesses(run) == {KEY: {"aten::add.Tensor": True, "aten::empty": False}}


def test_cases_in_fallback_are_found_for_the_strict_mode(store: Store) -> None:
    run, group = planned(store)
    store.add_case(group, 0, Outcome(CaseVerdict.PASSED), "")
    store.add_case(group, 1, Outcome(CaseVerdict.FALLBACK, fallbacks=("aten::mode",)), "")
    store.add_case(group, 2, Outcome(CaseVerdict.WRONG, fallbacks=("aten::mode",)), "")
    assert store.positions_with_fallback(run) == {KEY: [1, 2]}


def test_fallbacks_are_counted_by_case(store: Store) -> None:
    run, group = planned(store)
    store.add_case(group, 0, Outcome(CaseVerdict.PASSED), "")
    store.add_case(group, 1, Outcome(CaseVerdict.FALLBACK, fallbacks=("aten::mode", "aten::eye.m_out")), "")
    store.add_case(group, 2, Outcome(CaseVerdict.WRONG, fallbacks=("aten::mode",)), "")
    assert store.fallback_counts(run) == {"aten::mode": 2, "aten::eye.m_out": 1}
    counted = tally(store, store.run(run))
    assert counted.executed == 3
    assert counted.by_mode["fallback"][CaseVerdict.WRONG] == 1


def test_unknown_numbers_are_errors(store: Store) -> None:
    with pytest.raises(StoreError, match="no case 99"):
        store.case(99)
    with pytest.raises(StoreError, match="no run 5"):
        store.run(5)
    with pytest.raises(StoreError, match="holds no audit yet"):
        store.latest_run()


def test_an_absent_store_says_how_to_make_one(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="mpsmith audit --store"):
        Store.open(tmp_path / "absent.sqlite")


@pytest.mark.parametrize(
    "content", [b"not a database, long enough to be read as one" * 100, b"SQLite format 3\x00" * 64]
)
def test_a_damaged_file_is_refused_and_left_alone(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "damaged.sqlite"
    path.write_bytes(content)
    with pytest.raises(StoreError, match=r"damaged\.sqlite"):
        Store.open_or_create(path)
    assert path.read_bytes() == content


def test_a_foreign_database_is_refused_and_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "foreign.sqlite"
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE runs (anything TEXT)")
    connection.close()
    before = path.read_bytes()
    with pytest.raises(StoreError, match="not a store of mpsmith"):
        Store.open_or_create(path)
    assert path.read_bytes() == before


def test_another_format_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "old.sqlite"
    Store.create(path).close()
    with sqlite3.connect(path) as connection:
        connection.execute("PRAGMA user_version=99")
    connection.close()
    with pytest.raises(StoreError, match="store format 99"):
        Store.open(path)


def test_an_existing_file_is_not_created_over(tmp_path: Path) -> None:
    path = tmp_path / "store.sqlite"
    Store.create(path).close()
    with pytest.raises(StoreError, match="exists already"):
        Store.create(path)


def test_a_folder_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(StoreError, match="file"):
        Store.create(tmp_path / "file" / "store.sqlite")


def test_a_full_disk_is_one_line_and_loses_nothing(store: Store) -> None:
    _, group = planned(store)
    store.add_case(group, 0, Outcome(CaseVerdict.PASSED), "")
    pages = store._connection.execute("PRAGMA page_count").fetchone()[0]
    store._connection.execute(f"PRAGMA max_page_count={pages}")
    with pytest.raises(StoreError, match=r"full \(free some space and continue with --resume\)"):
        store.add_cases([(group, i, Outcome(CaseVerdict.PASSED, message="x" * 4000), "") for i in range(1, 50)])
    assert store.positions(group) == {0}
