"""The same cases through the kernels of several releases: fixed, new and unchanged wrong results, each once."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from mpsmith.audit.findings.shipped.release_changes import Change, ReleaseChange, release_changes
from mpsmith.audit.model.verdicts import CaseVerdict, Grade, Outcome
from mpsmith.audit.store.records import Run
from mpsmith.audit.store.store import Store
from mpsmith.cli.release_changes_text import changes_json, changes_table
from support.stores import begun, opinfo

PASSED = Outcome(CaseVerdict.PASSED)
WRONG = Outcome(CaseVerdict.WRONG, message="1 of 3 elements differ")
TIMEOUT = Outcome(CaseVerdict.TIMEOUT, message="time-out")
SKIPPED = Outcome(CaseVerdict.SKIPPED, message="too large")
SHIPPED, STOOD_IN = Grade.SHIPPED_KERNEL, Grade.DISPATCH_ONLY
Case = tuple[Outcome, Grade]


def run_of(store: Store, release: str, *cases: Case | None) -> Run:
    """A run of one group; the case at a position with this outcome and grade, or none there."""
    recording = begun(store, {"ops": [], "dtypes": []}, {"shipped": release})
    recording.add(opinfo("hypot"))
    group = store.groups(recording.run.id)[0].id
    for position, case in enumerate(cases):
        if case is not None:
            outcome, grade = case
            store.add_case(group, position, outcome, f"inputs {position}", grade)
            if grade is SHIPPED and outcome is not PASSED:
                store.add_case_kernels(group, position, [f"hypot_of_{release}"])
    return recording.finish()


def changes(store: Store, *releases: Sequence[Case | None]) -> tuple[ReleaseChange, ...]:
    names = ("2.13.0", "2.14.1", "2.15.0")[-len(releases) :]
    return release_changes([(store, run_of(store, name, *cases)) for name, cases in zip(names, releases, strict=True)])


@pytest.mark.parametrize(
    ("cases", "change", "words"),
    [
        (((WRONG, SHIPPED), (PASSED, SHIPPED)), Change.FIXED, ("wrong", "right")),
        (((PASSED, SHIPPED), (WRONG, SHIPPED)), Change.NEW, ("right", "wrong")),
        (((WRONG, SHIPPED), (TIMEOUT, SHIPPED)), Change.UNCHANGED, ("wrong", "timeout")),
        (((WRONG, SHIPPED), (PASSED, STOOD_IN)), Change.UNKNOWN, ("wrong", "stand-in")),
        (((PASSED, STOOD_IN), (WRONG, SHIPPED)), Change.UNKNOWN, ("stand-in", "wrong")),
        ((None, (WRONG, SHIPPED)), Change.UNKNOWN, ("not run", "wrong")),
        (((WRONG, SHIPPED), (SKIPPED, STOOD_IN)), Change.UNKNOWN, ("wrong", "not run")),
        (((WRONG, SHIPPED), (PASSED, SHIPPED), (WRONG, SHIPPED)), Change.NEW, ("wrong", "right", "wrong")),
        (((WRONG, SHIPPED), (PASSED, STOOD_IN), (PASSED, SHIPPED)), Change.FIXED, ("wrong", "stand-in", "right")),
    ],
)
def test_a_wrong_result_is_new_unchanged_or_fixed(
    store: Store, cases: tuple[Case | None, ...], change: Change, words: tuple[str, ...]
) -> None:
    (row,) = changes(store, *[[case] for case in cases])
    assert row.change is change
    assert tuple(word for _, word in row.releases) == words


def test_wrong_results_of_the_stand_in_are_not_changes(store: Store) -> None:
    assert changes(store, [(WRONG, STOOD_IN), (PASSED, SHIPPED)], [(WRONG, STOOD_IN), (PASSED, SHIPPED)]) == ()


def test_all_cases_count_for_host_code_also_refused_ones(store: Store) -> None:
    runs = []
    for tree, verdicts in (("/base", (PASSED, PASSED)), ("/changed", (WRONG, PASSED))):
        facts = {"host_code": {"source": tree, "macos": "14.0", "kernels": "", "overloads": []}}
        recording = begun(store, {"ops": [], "dtypes": []}, facts)
        recording.add(opinfo("hypot"), *verdicts)
        runs.append((store, recording.finish()))
    (row,) = release_changes(runs)  # dispatch only: it was refused before anything ran
    assert row.change is Change.NEW
    assert row.releases == (("/base (macOS 14.0)", "right"), ("/changed (macOS 14.0)", "wrong"))


def test_cases_that_all_releases_answer_alike_are_one_line(store: Store) -> None:
    old = [(WRONG, SHIPPED), (PASSED, SHIPPED), (WRONG, SHIPPED), (PASSED, SHIPPED)]
    new = [(PASSED, SHIPPED), (WRONG, SHIPPED), (PASSED, SHIPPED), (PASSED, SHIPPED)]
    appeared, fixed = changes(store, old, new)  # the worst news first
    assert (appeared.change, appeared.cases, appeared.inputs) == (Change.NEW, 1, "inputs 1")
    assert appeared.kernels == ("hypot_of_2.15.0",)
    assert (fixed.change, fixed.cases, fixed.example) == (Change.FIXED, 2, "opinfo:hypot:float32:0")
    assert fixed.kernels == ("hypot_of_2.14.1",)
    text = changes_table([appeared, fixed], ["2.14.1", "2.15.0"])
    assert text.startswith("wrong results (SIMULATED), 2.14.1 -> 2.15.0: 1 new, 1 fixed\n")
    assert "hypot_of_2.15.0" in text
    assert [row["releases"] for row in changes_json([fixed])] == [{"2.14.1": "wrong", "2.15.0": "right"}]
    assert changes_table([], ["2.14.1"]).endswith(": none")
