"""The report's list of reachable overloads that were not executed, with the reason."""

from __future__ import annotations

from dataclasses import replace

import pytest

from mpsmith.audit.cases.calls.recorded_calls import OverloadCalls, RecordedCalls
from mpsmith.audit.findings.not_executed import not_executed
from mpsmith.audit.findings.results import NotExecuted, OverloadSummary
from mpsmith.audit.model.group import GroupKey
from mpsmith.audit.model.verdicts import CaseVerdict, OverloadVerdict
from mpsmith.audit.store.records import CaseCount, Run
from mpsmith.reports import run_tables


def overload(name: str, executed: int = 0, rule: str = "") -> OverloadSummary:
    return OverloadSummary(
        f"aten::{name}",
        "aten::x",
        "",
        None,
        OverloadVerdict.UNREACHABLE,
        "no case",
        unreachable_rule=rule,
        executed=executed,
    )


OVERLOADS = [overload("ran", executed=3), overload("excluded", rule="mkldnn"), overload("refused"), overload("skipped")]
MEMORY = RecordedCalls(
    "2.13.0",
    {
        "aten::refused": OverloadCalls(tried=400, errors=["wants a", "wants b", "wants c", "wants d"]),
        "aten::skipped": OverloadCalls([{"args": [1]}] * 4, ["float32"]),
    },
)
COUNTS = [
    CaseCount(
        GroupKey("schema", "skipped", "", "float32", "fallback"), CaseVerdict.SKIPPED, "no CSR here", 4, 0, 0, 0.0
    ),
    CaseCount(
        GroupKey("opinfo", "refused", "", "float32", "fallback"), CaseVerdict.SKIPPED, "of another", 4, 0, 0, 0.0
    ),
]


def run(**settings: object) -> Run:
    return Run(1, "2026-01-01T00:00:00+00:00", None, settings, {})


def test_each_missed_overload_lists_attempts_and_errors() -> None:
    refused, skipped = not_executed(run(), OVERLOADS, COUNTS, MEMORY)
    assert refused == NotExecuted("aten::refused", 0, 400, ("wants a", "wants b", "wants c"))
    assert skipped == NotExecuted("aten::skipped", 4, 0, ("no CSR here",))


@pytest.mark.parametrize("choice", ["ops", "dtypes"])
def test_a_run_of_some_operators_lists_nothing(choice: str) -> None:
    assert not_executed(run(**{choice: ["relu"]}), OVERLOADS, COUNTS, MEMORY) == ()


def test_the_table_has_a_row_for_each(summary_of_nothing) -> None:
    missed = not_executed(run(), OVERLOADS, COUNTS, MEMORY)
    table = run_tables.missed_table(replace(summary_of_nothing, not_executed=missed))
    assert table.rows[0] == ("aten::refused", 0, 400, "wants a; wants b; wants c")
    assert table.rows[1] == ("aten::skipped", 4, 0, "no CSR here")
    assert "SIMULATED" in table.heading


@pytest.fixture
def summary_of_nothing():
    from mpsmith.audit.findings.results import AuditSummary
    from mpsmith.audit.findings.run_facts import RunFacts

    facts = RunFacts(False, True, {}, {}, 0, 0, 0, 0, 0)
    return AuditSummary(facts, "2.13.0", "", {}, {}, {}, (), (), (), (), (), (), {})
