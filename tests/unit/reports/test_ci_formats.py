"""JUnit XML and SARIF: what fails, what is skipped, and that a simulated device is named."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any
from xml.etree import ElementTree

from mpsmith.audit.findings.results import Breakage, OverloadSummary
from mpsmith.audit.model.verdicts import CaseVerdict, OverloadVerdict
from mpsmith.reports import junit_report, sarif_report

NATIVE, WRONG, UNREACHABLE = OverloadVerdict.NATIVE, OverloadVerdict.WRONG, OverloadVerdict.UNREACHABLE


def summary() -> Any:
    def overload(
        name: str, verdict: OverloadVerdict, reason: str = "", executed: int = 1, **more: Any
    ) -> OverloadSummary:
        return OverloadSummary(f"aten::{name}", "aten::a", "", None, verdict, reason, executed=executed, **more)

    broken = Breakage(CaseVerdict.WRONG, 1, ("int8",), "opinfo:d:int8:0", "differs")
    overloads = (
        overload("a", NATIVE),
        overload("b", WRONG, "differs\x00", worst_case="opinfo:b:float32:0"),
        overload("c", UNREACHABLE, "no call", executed=0),
        overload("d", NATIVE, breakages=(broken,)),
    )
    return SimpleNamespace(run=SimpleNamespace(simulated=True, host_code=""), shipped=None, overloads=overloads)


def test_junit_has_a_test_for_each_overload() -> None:
    suite = ElementTree.fromstring(junit_report.render(summary()))
    assert (suite.get("tests"), suite.get("failures"), suite.get("skipped")) == ("4", "2", "1")
    ends = {case.get("name"): [child.tag for child in case] for case in suite.iter("testcase")}
    assert ends == {"aten::a": [], "aten::b": ["failure"], "aten::c": ["skipped"], "aten::d": ["failure"]}
    assert "SIMULATED" in str(suite.find("properties/property").get("value"))  # type: ignore[union-attr]
    assert "mpsmith replay 'opinfo:b:float32:0'" in [failure.text for failure in suite.iter("failure")]


def test_sarif_has_a_result_for_each_failing_overload() -> None:
    (run,) = json.loads(sarif_report.render(summary()))["runs"]
    rules = [rule["id"] for rule in run["tool"]["driver"]["rules"]]
    results = [(result["ruleId"], result["level"]) for result in run["results"]]
    assert results == [("wrong", "error"), ("wrong", "error")]
    assert {rule for rule, _ in results} <= set(rules)
    assert run["properties"]["simulated"] is True
