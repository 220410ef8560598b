"""The results store keeps what was found, refuses what is not its own, and survives bad disks."""

from __future__ import annotations

import os
import sqlite3
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from mpsmith.audit.findings.run_data import read_run
from mpsmith.audit.findings.tally import tally
from mpsmith.audit.model.group import GroupKey
from mpsmith.audit.model.launches import Launches
from mpsmith.audit.model.verdicts import CaseVerdict, Grade, Outcome
from mpsmith.audit.store.connection import StoreError
from mpsmith.audit.store.records import Covered, ModuleRow, ModuleStatus
from mpsmith.audit.store.store import Store
from mpsmith.simulator.upstream.host_work import LOST, HostWork

KEY = GroupKey("opinfo", "nn.functional.softshrink", "", "float32", "fallback")
ENVIRONMENT = {"simulated": True, "torch": "2.13.0"}


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
    store.add_called_overloads(group, {"aten::add.Tensor": True})
    store.add_called_overloads(group, {"aten::add.Tensor": False, "aten::empty": False})
    assert store.called_overloads(run) == {KEY: {"aten::add.Tensor": True, "aten::empty": False}}


def test_cases_in_fallback_are_found_for_the_strict_mode(store: Store) -> None:
    run, group = planned(store)
    store.add_case(group, 0, Outcome(CaseVerdict.PASSED), "")
    store.add_case(group, 1, Outcome(CaseVerdict.FALLBACK, fallbacks=("aten::mode",)), "")
    store.add_case(group, 2, Outcome(CaseVerdict.WRONG, fallbacks=("aten::mode",)), "")
    assert store.positions_with_fallback(run) == {KEY: [1, 2]}


def test_levels_of_executed_cases_are_stored_once(store: Store) -> None:
    run, group = planned(store)
    first, second, refused = ((("dtype", level), ("size", "small")) for level in ("int8", "bool", "float16"))
    store.add_case(group, 0, Outcome(CaseVerdict.PASSED), "")
    store.add_case(group, 1, Outcome(CaseVerdict.WRONG), "")
    store.add_case(group, 2, Outcome(CaseVerdict.PASSED), "")
    store.add_case(group, 3, Outcome(CaseVerdict.REFERENCE_FAILED), "")
    store.add_case(group, 4, Outcome(CaseVerdict.PASSED, compared="errors"), "")
    store.add_covered(group, 12, {0: first, 1: second, 2: first, 3: refused, 4: refused, 5: refused})
    assert list(store.covered(run)) == [Covered(KEY, 12, (first, second), (refused,))]
    assert store.repeating(run) == 12
    assert (
        "  12 samples left out that repeat others (--samples full runs them)"
        in tally(read_run(store, store.run(run))).lines()
    )
    store.add_covered(group, 13, {0: first})  # a resumed run does it again
    assert list(store.covered(run)) == [Covered(KEY, 13, (first,))]


def test_a_case_has_the_grade_that_was_recorded_or_that_of_its_device(store: Store) -> None:
    run, group = planned(store)
    store.add_case(group, 0, Outcome(CaseVerdict.PASSED), "")
    store.add_case(group, 1, Outcome(CaseVerdict.PASSED), "", Grade.SHIPPED_KERNEL)
    store.add_case(group, 2, Outcome(CaseVerdict.PASSED), "", Grade.SHIPPED_KERNEL)
    assert [case.grade for case in store.cases(run)] == [Grade.DISPATCH_ONLY, *[Grade.SHIPPED_KERNEL] * 2]
    assert {count.grade: count.cases for count in store.case_counts(run)} == {
        Grade.DISPATCH_ONLY: 1,
        Grade.SHIPPED_KERNEL: 2,
    }
    assert "  evidence: 2 shipped kernel, 1 dispatch only" in tally(read_run(store, store.run(run))).lines()
    on_a_mac = store.begin_run({"seed": 0}, {**ENVIRONMENT, "simulated": False}).id
    store.plan(on_a_mac, [KEY])
    store.add_case(store.groups(on_a_mac)[0].id, 0, Outcome(CaseVerdict.WRONG), "")
    assert [case.grade for case in store.cases(on_a_mac)] == [Grade.REAL_DEVICE]
    assert [count.grade for count in store.case_counts(on_a_mac)] == [Grade.REAL_DEVICE]


def test_launches_of_a_group_are_added_up_and_those_of_a_case_kept(store: Store) -> None:
    run, group = planned(store)
    first = Launches(2, Counter(exp_dense=2), Counter(), 1)
    again = Launches(1, Counter(exp_dense=1), Counter(MPSGraph=4), 1)
    store.add_launches(group, {"aten::exp": first})
    store.add_launches(group, {"aten::exp": again, "aten::mul.Tensor": again})  # a worker died between
    both = Launches(3, Counter(exp_dense=3), Counter(MPSGraph=4), 2)
    assert list(store.launches(run)) == [(KEY, "aten::exp", both), (KEY, "aten::mul.Tensor", again)]
    store.add_case(group, 0, Outcome(CaseVerdict.WRONG), "", Grade.SHIPPED_KERNEL)
    store.add_case_kernels(group, 0, ["exp_dense", "mul_dense"])
    store.add_case(group, 1, Outcome(CaseVerdict.WRONG), "")
    assert [case.kernels for case in store.cases(run)] == [("exp_dense", "mul_dense"), ()]
    assert store.shipped_kernels(run) == ()
    store.add_shipped_kernels(run, ["exp_dense", "mul_dense"])
    assert store.shipped_kernels(run) == ("exp_dense", "mul_dense")


def test_host_work_of_a_group_is_added_up_and_named_in_the_last_lines(store: Store) -> None:
    run, group = planned(store)
    svd = HostWork(1, 0, 2, Counter({"aten::linalg_svd": 1, "copy to the host": 1}))
    add = HostWork(4, 3, 0, Counter({LOST: 1}))
    store.add_host_work(group, {"aten::_linalg_svd.U": svd, "aten::add.out": add})
    store.add_host_work(group, {"aten::_linalg_svd.U": svd})  # a worker died between
    both = HostWork(2, 0, 4, Counter({"aten::linalg_svd": 2, "copy to the host": 2}))
    assert store.host_work(run) == {"aten::_linalg_svd.U": both, "aten::add.out": add}
    lines = tally(read_run(store, store.run(run))).lines()
    assert "  MPSGraph: 3 graphs by the stand-in, which computes with torch's CPU operators" in lines
    assert "  native, but on the CPU inside: aten::_linalg_svd.U (aten::linalg_svd)" in lines
    assert "  results in a gathered copy of a view, which no one reads: aten::add.out (1)" in lines
    assert "  waits for the GPU: aten::_linalg_svd.U (2.0 a call)" in lines


def test_fallbacks_are_counted_by_case(store: Store) -> None:
    run, group = planned(store)
    store.add_case(group, 0, Outcome(CaseVerdict.PASSED), "")
    store.add_case(group, 1, Outcome(CaseVerdict.FALLBACK, fallbacks=("aten::mode", "aten::eye.m_out")), "")
    store.add_case(group, 2, Outcome(CaseVerdict.WRONG, fallbacks=("aten::mode",)), "")
    counted = tally(read_run(store, store.run(run)))
    assert counted.fallbacks == {"aten::mode": 2, "aten::eye.m_out": 1}
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


def test_a_case_is_found_by_its_number_and_by_its_label(store: Store) -> None:
    run, group = planned(store)
    strict = GroupKey("opinfo", "max", "reduction_with_dim", "int64", "strict")
    store.plan(run, [strict])
    store.add_case(group, 7, Outcome(CaseVerdict.WRONG), "")
    store.add_case(store.groups(run)[1].id, 0, Outcome(CaseVerdict.MISSING), "")
    by_label = {case.label: case for case in store.cases(run)}
    assert list(by_label) == [
        "opinfo:max.reduction_with_dim:int64:0:strict",
        "opinfo:nn.functional.softshrink:float32:7",
    ]
    for label, case in by_label.items():
        assert store.named_case(label) == store.named_case(str(case.id)) == (store.run(run), case)
    for name in ("opinfo:max.reduction_with_dim:int64:0", "opinfo:nn.functional.softshrink:float32:8", "softshrink"):
        with pytest.raises(StoreError, match="no case"):
            store.named_case(name)


def test_a_label_means_the_newest_run_that_has_the_case(store: Store) -> None:
    for verdict in (CaseVerdict.WRONG, CaseVerdict.PASSED):
        _, group = planned(store)
        store.add_case(group, 0, Outcome(verdict), "")
    planned(store)  # a third run, that has not come to the case
    run, case = store.named_case("opinfo:nn.functional.softshrink:float32:0")
    assert (run.id, case.outcome.verdict) == (2, CaseVerdict.PASSED)


def test_reading_order_does_not_depend_on_execution_order(tmp_path: Path) -> None:
    keys = [
        GroupKey(s, o, "", d, "fallback") for s in ("sizes", "forms") for o in ("b", "a") for d in ("int8", "float32")
    ]
    read = []
    for name, order in (("one", keys), ("other", keys[::-1])):
        with Store.create(tmp_path / name) as store:
            run = store.begin_run({}, ENVIRONMENT).id
            store.plan(run, order)
            for group in store.groups(run):
                store.add_called_overloads(
                    group.id, {"aten::b": True, "aten::a": True} if name == "one" else {"aten::a": True}
                )
                store.add_called_overloads(group.id, {"aten::b": True})
                for position in (0, 1) if name == "one" else (1, 0):
                    store.add_case(group.id, position, Outcome(CaseVerdict.WRONG), "")
            for row in sorted(("torch.mps.a", "torch.mps.b"), reverse=name == "one"):
                store.add_module_row(run, ModuleRow(row, ModuleStatus.WORKS))
            read.append(
                (
                    [case.label for case in store.cases(run)],
                    [replace(count, seconds=0.0) for count in store.case_counts(run)],
                    [(key, list(called)) for key, called in store.called_overloads(run).items()],
                    store.module_rows(run),
                )
            )
    assert read[0] == read[1]
    assert read[0][0][:3] == ["forms:a:float32:0", "forms:a:float32:1", "forms:a:int8:0"]


def test_a_damaged_store_is_refused_and_not_changed(tmp_path: Path) -> None:
    path = tmp_path / "store.sqlite"
    with Store.create(path) as store:
        _, group = planned(store)
        store.add_cases([(group, i, Outcome(CaseVerdict.PASSED, message="x" * 500), "") for i in range(100)])
    content = bytearray(path.read_bytes())
    content[-3 * 4096 :] = b"\xff" * (3 * 4096)  # the header and the first tables are whole
    path.write_bytes(content)
    with pytest.raises(StoreError, match=r"store\.sqlite"):
        Store.open_or_create(path)
    assert path.read_bytes() == bytes(content)


def test_a_store_on_a_medium_that_cannot_be_written_is_read(readable_folder: Path) -> None:
    path = readable_folder / "store.sqlite"
    with Store.create(path) as store:
        run, group = planned(store)
        store.add_case(group, 3, Outcome(CaseVerdict.PASSED), "")
    path.chmod(0o444)
    readable_folder.chmod(0o555)
    assert as_unprivileged_user(lambda: [case.label for case in Store.open(path).cases(run)]) == (
        "['opinfo:nn.functional.softshrink:float32:3']"
    )
    assert sorted(p.name for p in readable_folder.iterdir()) == ["store.sqlite"]


def test_rows_that_only_the_log_of_a_read_only_store_has_are_not_left_out_in_silence(readable_folder: Path) -> None:
    path = readable_folder / "store.sqlite"
    with Store.create(path) as store:
        planned(store)
        log = path.with_name("store.sqlite-wal").read_bytes()
    path.with_name("store.sqlite-wal").write_bytes(log)  # as copied from a machine where an audit was running
    for file in readable_folder.iterdir():
        file.chmod(0o444)
    readable_folder.chmod(0o555)
    assert "copy both to a writable folder" in as_unprivileged_user(lambda: Store.open(path).runs())


@pytest.fixture
def readable_folder() -> Iterator[Path]:
    """A folder that another user can reach, unlike those of pytest."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        yield Path(folder)
        Path(folder).chmod(0o755)


def as_unprivileged_user(call: Callable[[], object]) -> str:
    """What the call returns or raises in a process of a user who may write nowhere, as text."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            if os.geteuid() == 0:
                os.setuid(65534)
            outcome = repr(call())
        except BaseException as error:
            outcome = str(error)
        os.write(writing, outcome.encode())
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as answer:
        outcome = answer.read()
    os.waitpid(child, 0)
    return outcome
