"""Groups that travel from one store into another: once, whole, and unchanged."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from mpsmith.audit.compiled.verdicts import CompiledOutcome, CompiledVerdict
from mpsmith.audit.model.launches import Launches
from mpsmith.audit.model.verdicts import AtFault, CaseVerdict, Grade, Outcome, UlpSensitivity
from mpsmith.audit.store.connection import StoreError
from mpsmith.audit.store.group_rows import GroupRows
from mpsmith.audit.store.records import Run, StoredGroup
from mpsmith.audit.store.store import Store
from support.stores import begun, opinfo

KEY = opinfo("sort")


def filled(store: Store) -> tuple[Run, StoredGroup]:
    """A group with a row in every table."""
    recording = begun(store)
    wrong = Outcome(CaseVerdict.WRONG, "forward", "differs\n", ("aten::a",), "close", math.inf, True, 0.5)
    recording.add(KEY, wrong, Outcome(CaseVerdict.PASSED), calls={"sort": True, "empty": False})
    (group,) = store.groups(recording.run.id)
    store.add_case(group.id, 7, wrong, "(int8[2])", Grade.SHIPPED_KERNEL)
    store.add_inner_fault(group.id, 0, AtFault("aten::sort", "sort()", "wrong"))
    store.add_covered(group.id, 3, {0: (("size", "small"),), 1: (("size", "large"),)})
    store.add_launches(group.id, {"aten::sort": Launches(calls=2, cases=1)})
    store.add_case_kernels(group.id, 7, ["sort_block"])
    store.add_ulp_sensitivity(group.id, 7, UlpSensitivity.INSENSITIVE)
    return recording.run, group


def planned(store: Store) -> int:
    run = begun(store).run
    store.plan(run.id, [KEY])
    (group,) = store.groups(run.id)
    return group.id


def test_everything_of_a_group_arrives_and_nothing_changes_when_it_comes_again(tmp_path: Path) -> None:
    with Store.create(tmp_path / "a.sqlite") as a, Store.create(tmp_path / "b.sqlite") as b:
        _, group = filled(a)
        (rows,) = a.rows_of([group])
        assert set(rows.tables) == {"cases", "called_overloads", "covered", "looked_inside", "launches", "case_kernels"}
        number = planned(b)
        assert b.add_rows([(number, rows)]) == [number]
        assert b.add_rows([(number, rows), (number, GroupRows(KEY, {}))]) == []
        (arrived,) = b.groups(1)
        assert arrived.done
        assert b.rows_of([arrived]) == [rows]
        assert list(b.covered(1)) == list(a.covered(1))
        assert [case.outcome for case in b.cases(1)] == [case.outcome for case in a.cases(1)]


def test_cases_that_a_stopped_run_recorded_stay(tmp_path: Path) -> None:
    with Store.create(tmp_path / "a.sqlite") as a, Store.create(tmp_path / "b.sqlite") as b:
        _, group = filled(a)
        number = planned(b)
        b.add_case(number, 1, Outcome(CaseVerdict.CRASH), "")
        b.add_launches(number, {"aten::sort": Launches(calls=1, cases=1)})
        assert b.add_rows([(number, a.rows_of([group])[0])]) == [number]
        verdicts = [case.outcome.verdict for case in b.cases(1)]
        assert verdicts == [CaseVerdict.WRONG, CaseVerdict.CRASH, CaseVerdict.WRONG]
        ((_, _, launches),) = b.launches(1)
        assert (launches.calls, launches.cases) == (2, 1)  # those of the whole group, not both together


def test_a_batch_is_stored_whole_or_not_at_all(tmp_path: Path) -> None:
    with Store.create(tmp_path / "a.sqlite") as a, Store.create(tmp_path / "b.sqlite") as b:
        _, group = filled(a)
        (rows,) = a.rows_of([group])
        number = planned(b)
        damaged = GroupRows(KEY, {"cases": [*rows.tables["cases"], (9, "passed", None, *rows.tables["cases"][0][3:])]})
        with pytest.raises(StoreError, match="NOT NULL"):
            b.add_rows([(number, damaged)])
        assert list(b.cases(1)) == []
        assert b.add_rows([(number, rows)]) == [number]


@pytest.mark.parametrize("cases", [20, 47])
def test_rows_that_are_inserted_together_are_all_there(tmp_path: Path, cases: int) -> None:
    with Store.create(tmp_path / "a.sqlite") as a, Store.create(tmp_path / "b.sqlite") as b:
        _, group = filled(a)
        a.add_cases([(group.id, 10 + at, Outcome(CaseVerdict.PASSED), f"(int64[{at}])") for at in range(cases)])
        a.add_called_overloads(group.id, {f"aten::called{at}": True for at in range(cases)})
        (rows,) = a.rows_of([group])
        number = planned(b)
        b.add_case(number, 12, Outcome(CaseVerdict.CRASH), "(int64[2])")
        b.add_rows([(number, rows)])
        (arrived,) = b.rows_of(b.groups(1))
        expected = [(12, "crash") if row[0] == 12 else row[:2] for row in rows.of("cases")]
        assert [row[:2] for row in arrived.of("cases")] == expected
        assert arrived.of("called_overloads") == rows.of("called_overloads")


def test_compiled_cases_travel_with_their_sources(tmp_path: Path) -> None:
    with Store.create(tmp_path / "a.sqlite") as a, Store.create(tmp_path / "b.sqlite") as b:
        _, group = filled(a)
        compiled = CompiledOutcome(CompiledVerdict.WRONG, Outcome(CaseVerdict.WRONG), source="kernel void f() {}")
        a.add_compiled(group.id, 0, compiled)
        number = planned(b)
        b.add_rows([(number, a.rows_of([group])[0])])
        assert next(b.compiled_cases(1)).compiled.source == "kernel void f() {}"
