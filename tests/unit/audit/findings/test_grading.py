"""What ran in the cases is the grade of what they say, of an overload, a dtype, an operator and an entry."""

from __future__ import annotations

import pytest

from mpsmith.audit.findings.measurements import measurements_of
from mpsmith.audit.findings.results import AuditSummary
from mpsmith.audit.findings.summary import summarize
from mpsmith.audit.model.verdicts import CaseVerdict, Grade, Outcome, strongest
from mpsmith.audit.releases.surface.overloads import Dispatch
from mpsmith.audit.store.store import Store
from support.stores import Recording, begun, opinfo
from support.surfaces import overload, surface

SURFACE = surface(overload("relu", Dispatch.NATIVE), overload("sin", Dispatch.NATIVE))
PASSED = Outcome(CaseVerdict.PASSED)
WRONG = Outcome(CaseVerdict.WRONG, message="3 of 4 elements differ")


def recorded(store: Store, *, simulated: bool = True) -> Recording:
    recording = begun(store, {"ops": [], "dtypes": []}, {"simulated": simulated, "variables": {}})
    recording.add(opinfo("relu"), PASSED, WRONG, calls={"relu": True})
    recording.add(opinfo("relu", "int8"), Outcome(CaseVerdict.REFERENCE_FAILED), calls={"relu": True})
    recording.add(opinfo("sin"), Outcome(CaseVerdict.SKIPPED, message="too large"))
    return recording


def summary_of(store: Store, recording: Recording) -> AuditSummary:
    return summarize(store, recording.finish(), SURFACE)


@pytest.mark.parametrize(("simulated", "grade"), [(True, Grade.DISPATCH_ONLY), (False, Grade.REAL_DEVICE)])
def test_a_device_by_itself_has_one_grade(store: Store, simulated: bool, grade: Grade) -> None:
    summary = summary_of(store, recorded(store, simulated=simulated))
    relu, sin = summary.overloads
    assert (relu.grade, relu.dtypes["float32"].grade) == (grade, grade)
    assert (sin.grade, sin.dtypes) == (None, {})
    assert {operator.name: operator.grade for operator in summary.operators} == {"aten::relu": grade, "aten::sin": None}
    assert {entry.name: entry.grade for entry in summary.entries} == {"relu": grade, "sin": None}
    assert summary.run.grades == {grade: 2}
    assert summary.grade_counts == {grade: 1}
    assert [faulty.grade for faulty in summary.at_fault] == [grade]
    assert {row.entry: row.grade for row in summary.explanation.unexplained} == {"relu": grade, "sin": None}
    assert [measurement.shipped_kernel for measurement in measurements_of(summary)] == [()]


def test_a_dtype_that_was_not_executed_has_no_grade(store: Store) -> None:
    relu, _ = summary_of(store, recorded(store)).overloads
    assert relu.dtypes["int8"].grade is None


def test_the_strongest_grade_of_several_is_known() -> None:
    assert strongest([]) is strongest([None]) is None
    assert strongest([None, Grade.DISPATCH_ONLY, Grade.SHIPPED_KERNEL]) is Grade.SHIPPED_KERNEL
    assert strongest([Grade.SHIPPED_KERNEL, Grade.REAL_DEVICE]) is Grade.REAL_DEVICE


@pytest.mark.parametrize(
    ("called", "grade"),
    [
        ({"chain": True, "relu": False}, Grade.HOST_CODE),
        ({"chain": True, "relu": False, "sin": False}, Grade.DISPATCH_ONLY),  # the CPU's kernel computed sin
        ({"chain": False, "relu": False}, Grade.DISPATCH_ONLY),  # the user's code did not call it
    ],
)
def test_compositions_of_host_code_have_that_grade(store: Store, called: dict[str, bool], grade: Grade) -> None:
    environment = {"simulated": True, "variables": {}, "host_code": {"overloads": ["aten::relu"]}}
    recording = begun(store, {"ops": [], "dtypes": []}, environment)
    recording.add(opinfo("chain"), calls=called, done=False)
    (group,) = store.groups(recording.run.id)
    store.add_case(group.id, 0, PASSED, "(float32[3])", Grade.HOST_CODE)
    store.mark_done(group.id)
    declared = surface(*SURFACE.overloads, overload("chain", Dispatch.COMPOSITE_EXPLICIT))
    overloads = {o.name: o.grade for o in summarize(store, recording.finish(), declared).overloads}
    assert overloads["aten::chain"] is grade


def test_an_overload_that_upstream_source_answered_has_that_grade(store: Store) -> None:
    environment = {"simulated": True, "variables": {}, "host_code": {"overloads": ["aten::relu"]}}
    recording = begun(store, {"ops": [], "dtypes": []}, environment)
    for name, dtype, grade in (
        ("relu", "float32", Grade.HOST_CODE),
        ("relu", "int8", None),
        ("sin", "float32", Grade.HOST_CODE),
    ):
        recording.add(opinfo(name, dtype), calls={name: True}, done=False)
        group = next(group for group in store.groups(recording.run.id) if group.key == opinfo(name, dtype))
        store.add_case(group.id, 0, PASSED, "(float32[3])", grade)
        store.mark_done(group.id)
    relu, sin = summary_of(store, recording).overloads
    assert relu.grade is relu.dtypes["float32"].grade is Grade.HOST_CODE
    # The CPU's kernel computed the other dtype, and sin only called what upstream's source answers.
    assert relu.dtypes["int8"].grade is sin.grade is Grade.DISPATCH_ONLY
