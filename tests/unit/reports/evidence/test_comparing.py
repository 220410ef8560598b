"""Comparing audits, evidence and releases: new wrong results come first; what one side never ran is not worse."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from mpsmith.audit.model.verdicts import CaseVerdict, Outcome, OverloadVerdict
from mpsmith.cli import app
from mpsmith.cli.compare_text import text_lines
from mpsmith.reports.evidence.comparing import Differences, Side, SideVerdict, Transition, differences, side_of
from support.commands import typed
from support.evidence_files import evidence, kernel_row, written
from support.json_document import documented
from support.stores import begun, new_store, opinfo

NATIVE, FALLBACK, WRONG = (
    SideVerdict(verdict) for verdict in (OverloadVerdict.NATIVE, OverloadVerdict.FALLBACK, OverloadVerdict.WRONG)
)
BROKEN = SideVerdict(OverloadVerdict.WRONG, broken=True)
PARTLY = SideVerdict(OverloadVerdict.NATIVE, broken=True)
COMPOSITE = SideVerdict(OverloadVerdict.COMPOSITE)


def side(**overloads: SideVerdict) -> Side:
    dtypes = {(f"aten::{name}", "float32"): verdict for name, verdict in overloads.items()}
    return Side("x", "x", False, {name: verdict for (name, _), verdict in dtypes.items()}, dtypes)


@pytest.mark.parametrize(
    ("before", "after", "became"),
    [
        (NATIVE, BROKEN, Transition.NEW_WRONG),
        (NATIVE, PARTLY, Transition.NEW_WRONG),
        (FALLBACK, BROKEN, Transition.NEW_WRONG),
        (BROKEN, NATIVE, Transition.BETTER),
        (PARTLY, NATIVE, Transition.BETTER),
        (NATIVE, FALLBACK, Transition.WORSE),
        (FALLBACK, NATIVE, Transition.BETTER),
        (NATIVE, COMPOSITE, Transition.OTHER),
        (None, BROKEN, Transition.ONLY_AFTER),
        (BROKEN, None, Transition.ONLY_BEFORE),
    ],
)
def test_how_an_overload_changed(before: SideVerdict | None, after: SideVerdict | None, became: Transition) -> None:
    old, new = ({"mode": verdict} if verdict else {"sort": NATIVE} for verdict in (before, after))
    (change,) = [change for change in differences(side(**old), side(**new)).verdicts if change.overload == "aten::mode"]
    assert change.became is became


def test_new_wrong_results_come_first() -> None:
    old = side(a=FALLBACK, b=NATIVE, c=NATIVE, d=NATIVE)
    new = side(a=NATIVE, b=FALLBACK, c=BROKEN, e=NATIVE)
    assert [change.overload for change in differences(old, new).verdicts] == [f"aten::{name}" for name in "cbade"]


FIRST = {"aten::mode": {"float32": {"passed": 5}, "int64": {"wrong": 1}}}
SECOND = {"aten::mode": {"float32": {"crash": 2}, "int64": {"passed": 4}}}


def of_files(tmp_path: Path, first: dict[str, Any], second: dict[str, Any], **named: Any) -> Differences:
    paths = [
        written(tmp_path, evidence(data, **named), f"{name}.json.gz") for name, data in (("a", first), ("b", second))
    ]
    return differences(*(side_of(str(path)) for path in paths))


def test_evidence_is_compared_by_overload_and_dtype_and_by_case(tmp_path: Path) -> None:
    changes = of_files(tmp_path, FIRST, SECOND)
    assert [(change.became, change.dtype) for change in changes.verdicts] == [
        (Transition.NEW_WRONG, "float32"),
        (Transition.BETTER, "int64"),
    ]
    assert [failure.case for failure in changes.failures] == ["opinfo:mode:float32:0", "opinfo:mode:float32:1"]


def test_kernels_are_compared_by_their_times(tmp_path: Path) -> None:
    timing = {"operator": "aten::mode", "elements": 8, "kernel": 2.0, "cpu": 1.0}
    row = kernel_row("mode", "aten::mode", timing=timing)
    changes = of_files(tmp_path, FIRST, FIRST, kernels=[row])
    assert [(change.operator, change.before, change.after) for change in changes.times] == [("aten::mode", 2.0, 2.0)]


def test_a_release_is_compared_over_all_dtypes(tmp_path: Path) -> None:
    path = written(tmp_path, evidence({"aten::mode": {"float32": {"passed": 3}}}))
    changes = differences(side_of("2.13.0"), side_of(str(path)))
    (mode,) = [change for change in changes.verdicts if change.overload == "aten::mode"]
    assert (mode.dtype, str(mode.before), str(mode.after), mode.became) == ("", "missing", "native", Transition.BETTER)
    assert not changes.by_dtype
    lines = list(text_lines(differences(side_of("2.13.0"), side_of("2.15.0"))))
    assert "  only before: aten::cholesky: native -> not declared" in lines


def run_of(folder: Path, verdict: CaseVerdict) -> Path:
    folder.mkdir()
    with new_store(folder) as store:
        recording = begun(store)
        calls = {"mode": True}
        recording.add(opinfo("mode"), Outcome(verdict, message="says /Users/ada/x"), calls=calls)
        recording.finish()
        return store.path


@pytest.mark.parametrize(("fail_on", "code"), [("difference", 1), ("worse", 1), ("wrong", 1), ("never", 0)])
def test_the_command_compares_a_run_with_evidence(tmp_path: Path, fail_on: str, code: int) -> None:
    store = run_of(tmp_path / "a", CaseVerdict.PASSED)
    file = written(tmp_path, evidence({"aten::mode": {"float32": {"wrong": 2}}}))
    result = typed(app, "compare", str(store), str(file), "--fail-on", fail_on)
    assert result.exit_code == code
    assert "new wrong result: aten::mode in float32: native -> wrong" in result.output
    assert "SIMULATED" in result.output


@pytest.mark.parametrize(("fail_on", "code"), [("difference", 1), ("worse", 0), ("wrong", 0)])
def test_an_improvement_fails_only_where_any_difference_does(tmp_path: Path, fail_on: str, code: int) -> None:
    paths = [
        str(written(tmp_path, evidence({"aten::mode": {"float32": {verdict: 2}}}), f"{verdict}.json.gz"))
        for verdict in ("wrong", "passed")
    ]
    assert typed(app, "compare", *paths, "--fail-on", fail_on).exit_code == code


def test_markup_in_a_message_is_shown_as_it_is(tmp_path: Path) -> None:
    hostile = evidence({"aten::mode": {"float32": {"wrong": 1}}}).model_dump(mode="json")
    hostile["audit"]["failing"]["opinfo:mode:float32"][0]["message"] = "<img src=x> | [a](b) `c`"
    old = written(tmp_path, evidence({"aten::mode": {"float32": {"passed": 1}}}), "a.json.gz")
    new = written(tmp_path, evidence().model_validate(hostile), "b.json.gz")
    text = typed(app, "compare", str(old), str(new), "--markdown").output
    assert "&lt;img src=x&gt; \\| \\[a\\](b) \\`c\\`" in text
    assert "<img" not in text
    data = documented("compare", typed(app, "compare", str(old), str(new), "--json").output)
    assert data["verdicts"][0]["became"] == "new wrong result"
