"""Two audits are compared case by case: by inputs and by verdict, whatever the numbers in their stores."""

from __future__ import annotations

from pathlib import Path

import pytest

from mpsmith.audit.model.group import GroupKey
from mpsmith.audit.model.verdicts import CaseVerdict, Outcome
from mpsmith.audit.store.comparison import CaseDifference, compare_runs
from mpsmith.audit.store.records import Run
from mpsmith.audit.store.store import Store
from mpsmith.cli import app
from support.commands import typed
from support.json_document import documented
from support.stores import begun

KEY = GroupKey("opinfo", "mode", "", "float32", "fallback")
STRICT = GroupKey("opinfo", "mode", "", "float32", "strict")
PASSED, WRONG = CaseVerdict.PASSED, CaseVerdict.WRONG
Cases = dict[tuple[GroupKey, int], tuple[CaseVerdict, str]]

FOUR: Cases = {
    (KEY, 0): (PASSED, "(float32[3])"),
    (KEY, 1): (PASSED, "(float32[4])"),
    (KEY, 2): (WRONG, "(float32[5])"),
    (STRICT, 0): (CaseVerdict.MISSING, "(float32[3])"),
}


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MPSMITH_CACHE", str(tmp_path / "cache"))


def audit_of(path: Path, cases: Cases, seconds: float = 0.5) -> tuple[Store, Run]:
    store = Store.create(path)
    recording = begun(store, {"seed": 0})
    for (key, position), (verdict, inputs) in cases.items():
        recording.add(key, Outcome(verdict, seconds=seconds), inputs=inputs, start=position)
    return store, recording.finish()


def test_the_same_findings_in_another_order_are_the_same(tmp_path: Path) -> None:
    before = audit_of(tmp_path / "a.sqlite", FOUR)
    after = audit_of(tmp_path / "b.sqlite", dict(reversed(FOUR.items())), seconds=9.0)
    comparison = compare_runs(before, after)
    assert (comparison.before, comparison.after, comparison.same, comparison.differences) == (4, 4, 4, [])


@pytest.mark.parametrize(
    ("change", "difference"),
    [
        ({(KEY, 1): (WRONG, "(float32[4])")}, CaseDifference("opinfo:mode:float32:1", PASSED, WRONG)),
        ({(KEY, 1): (PASSED, "(float32[9])")}, CaseDifference("opinfo:mode:float32:1", PASSED, PASSED, True)),
        ({(KEY, 3): (PASSED, "(float32[6])")}, CaseDifference("opinfo:mode:float32:3", None, PASSED)),
        (
            {(STRICT, 0): (PASSED, "(float32[3])")},
            CaseDifference("opinfo:mode:float32:0:strict", CaseVerdict.MISSING, PASSED),
        ),
    ],
)
def test_a_change_of_one_case_is_named(tmp_path: Path, change: Cases, difference: CaseDifference) -> None:
    comparison = compare_runs(
        audit_of(tmp_path / "a.sqlite", FOUR), audit_of(tmp_path / "b.sqlite", {**FOUR, **change})
    )
    assert comparison.differences == [difference]
    assert comparison.same == len(FOUR) - (difference.before is not None)


def test_a_case_that_is_gone_is_named(tmp_path: Path) -> None:
    fewer = {key: value for key, value in FOUR.items() if key != (KEY, 2)}
    comparison = compare_runs(audit_of(tmp_path / "a.sqlite", FOUR), audit_of(tmp_path / "b.sqlite", fewer))
    assert comparison.differences == [CaseDifference("opinfo:mode:float32:2", WRONG, None)]


@pytest.mark.parametrize(("verdict", "code"), [(PASSED, 0), (WRONG, 1)])
def test_the_command_exits_with_1_where_something_differs(tmp_path: Path, verdict: CaseVerdict, code: int) -> None:
    audit_of(tmp_path / "a.sqlite", FOUR)
    audit_of(tmp_path / "b.sqlite", {**FOUR, (KEY, 1): (verdict, "(float32[4])")})
    arguments = ["compare", str(tmp_path / "a.sqlite"), str(tmp_path / "b.sqlite")]
    said = typed(app, *arguments)
    assert said.exit_code == code
    assert said.output.count("SIMULATED") == 2
    assert f"4 cases before, 4 after: {4 - code} the same, {code} different" in said.output
    data = documented("compare", typed(app, *arguments, "--json").output)
    assert data["cases"] == {"before": 4, "after": 4, "same": 4 - code}
    assert [row["case"] for row in data["differences"]] == ["opinfo:mode:float32:1"] * code
