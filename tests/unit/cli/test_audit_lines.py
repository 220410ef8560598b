"""What an audit says first and last: what is declared, then what is wrong, missing and new, and what to type."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from mpsmith.audit.findings.results import OperatorSummary, OverloadSummary
from mpsmith.audit.model.selection import Settings
from mpsmith.audit.model.verdicts import OverloadVerdict
from mpsmith.cli.audit_lines import answer_lines, opening_lines

NATIVE, WRONG, MISSING = OverloadVerdict.NATIVE, OverloadVerdict.WRONG, OverloadVerdict.MISSING


def verdicts(**by_name: OverloadVerdict) -> Any:
    overloads = [
        OverloadSummary(f"aten::{name}", f"aten::{name}", "", None, verdict, "", executed=1)
        for name, verdict in by_name.items()
    ]
    operators = [OperatorSummary(f"aten::{name}", verdict, {}, (), 1) for name, verdict in by_name.items()]
    return SimpleNamespace(overloads=overloads, operators=operators)


def test_wrong_and_missing_overloads_are_listed_by_use() -> None:
    lines = list(answer_lines(verdicts(erfc=WRONG, mode=MISSING, linalg_svd=MISSING, add=NATIVE), None))
    assert lines == [
        "overloads with the verdict wrong: aten::erfc",
        "missing or on the CPU, the most used first: aten::linalg_svd, aten::mode",
        "next: mpsmith why erfc",
    ]


def test_changes_since_the_previous_run_are_listed() -> None:
    lines = list(
        answer_lines(verdicts(erfc=NATIVE, mode=MISSING), verdicts(erfc=WRONG, mode=MISSING, old=NATIVE), "since run 1")
    )
    assert lines[0] == "overloads with the verdict wrong: none"
    assert "changed since run 1: aten::erfc (wrong -> native)" in lines


def test_a_clean_run_has_nothing_to_type() -> None:
    assert list(answer_lines(verdicts(add=NATIVE), None)) == [
        "overloads with the verdict wrong: none",
        "missing or on the CPU, the most used first: nothing",
    ]


def test_a_whole_audit_begins_with_the_declared_overloads() -> None:
    declared, reports = opening_lines(Settings(profile="2.13.0"))
    assert declared.startswith("torch 2.13.0 declares no mps kernel for ")
    assert "aten::linalg_svd" in declared
    assert "aten::max," not in declared  # max.unary_out alone is missing
    assert reports.endswith("upstream reports of wrong results are tried first")
    assert list(opening_lines(Settings(ops=("mode",)))) == []
