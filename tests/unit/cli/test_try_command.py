"""The forms of `mpsmith try`: JSON with the documented keys, JUnit XML and SARIF."""

from __future__ import annotations

import json
from typing import Any
from xml.etree import ElementTree

import pytest
from typer.testing import CliRunner

from mpsmith.cli import app
from mpsmith.scaffold.checkout import trying
from mpsmith.scaffold.checkout.results import FAILURES, TryResult, TryRow
from support.json_document import documented
from support.needs import needs_simulated_device

ROWS = (
    TryRow("metal", "k.metal", TryResult.ACCEPTED),
    TryRow("host", "a b.mm", TryResult.DEFECT, "follows data_ptr()", "a b.mm", 7),
    TryRow("extension", "_C", TryResult.REFUSED, "no texture", "/elsewhere/Metal.h", 3),
    TryRow("test", "t.py::a", TryResult.RIGHT),
    TryRow("test", "t.py::b", TryResult.WRONG, "differs\x00", "t.py", 0),
    TryRow("test", "t.py::c", TryResult.SKIPPED, "no scipy"),
)


@pytest.fixture
def tried(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Types `mpsmith try . OPTIONS` where it finds `ROWS`."""
    needs_simulated_device()
    monkeypatch.setattr(trying, "try_checkout", lambda *given: iter(ROWS))

    def typed(*options: str) -> str:
        done = CliRunner().invoke(app, ["try", ".", *options])
        assert done.exit_code == 1
        return done.stdout

    return typed


def test_json_has_the_documented_keys(tried: Any) -> None:
    printed = documented("try", tried("--json"))
    assert set(printed["rows"][0]) == {"kind", "name", "result", "reason", "file", "line"}
    assert printed["counts"] == dict.fromkeys([row.result.value for row in ROWS], 1)
    assert tried("--format", "json") == tried("--json")


def test_junit_has_a_test_for_each_row(tried: Any) -> None:
    suite = ElementTree.fromstring(tried("--format", "junit"))
    assert (suite.get("tests"), suite.get("failures"), suite.get("skipped")) == ("6", "3", "1")
    messages = {test.get("name"): next((child.get("message") for child in test), "") for test in suite.iter("testcase")}
    assert messages["t.py::a"] == messages["k.metal"] == ""
    assert messages["a b.mm"] == "follows data_ptr() (line 7)"
    assert "SIMULATED" in str(suite.find("properties/property").get("value"))  # type: ignore[union-attr]


def test_sarif_locations_are_in_the_checkout(tried: Any) -> None:
    (run,) = json.loads(tried("--format", "sarif"))["runs"]
    assert {result["ruleId"] for result in run["results"]} == {result.value for result in FAILURES}
    assert {rule["id"] for rule in run["tool"]["driver"]["rules"]} == {result.value for result in FAILURES}
    places = [result["locations"][0].get("physicalLocation") for result in run["results"]]
    assert places == [
        {"artifactLocation": {"uri": "a%20b.mm"}, "region": {"startLine": 7}},
        None,
        {"artifactLocation": {"uri": "t.py"}},
    ]


def test_the_terminal_leaves_out_right_rows(tried: Any) -> None:
    assert "t.py::a" not in tried()
    assert "host a b.mm: defect of the project (line 7): follows data_ptr()" in tried()
