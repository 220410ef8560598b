"""The findings in shipped kernels are valid, minimal, the same everywhere, and none that upstream has a report of."""

from __future__ import annotations

from pathlib import Path

import pytest

from mpsmith.registry import found_wrong, known_wrong

ENTRY = """
a-finding:
  summary: A sentence.
  operators: [aten::exp]
  kernel: exp_*
  why: Another one.
  wrong_in: [2.13.0, 2.15.0]
  case:
    call: torch.exp
    args: [{values: [1.0]}]
"""


def problems_of(folder: Path, text: str, operators: tuple[str, ...] = ()) -> list[str]:
    (folder / "one.yaml").write_text(text)
    return [problem.message for problem in found_wrong.examine(folder, operators)[1]]


def test_the_packaged_findings_are_valid() -> None:
    assert len(found_wrong.load()) > 20


def test_a_sound_entry_has_no_problem(tmp_path: Path) -> None:
    assert problems_of(tmp_path, ENTRY, ("aten::exp",)) == []


@pytest.mark.parametrize(
    ("replaced", "by", "expected"),
    [
        ("values: [1.0]", "shape: [1], fill: randn", "values that are the same everywhere"),
        ("call: torch.exp", "call: torch.exp\n    refused: true", "a call that the CPU computes"),
        ("kernel: exp_*", "notes: none", "notes"),
        ("  kernel: exp_*\n", "", "either a kernel, or the source of host code"),
        ("kernel: exp_*", "kernel: exp_*\n  source: UnaryOps.mm", "either a kernel, or the source of host code"),
        ("  why: Another one.\n", "", "why"),
        ("a-finding", "A finding", "'A finding' does not fit name"),
        ("wrong_in: [2.13.0, 2.15.0]", "wrong_in: [2.13.0, two]", "'two' does not fit"),
        ("aten::exp]", "aten::expp]", "there is no operator aten::expp"),
    ],
)
def test_reports_problems_of_an_entry(tmp_path: Path, replaced: str, by: str, expected: str) -> None:
    assert replaced in ENTRY
    (message,) = problems_of(tmp_path, ENTRY.replace(replaced, by), ("aten::exp",))
    assert expected in message


def test_a_name_is_given_once(tmp_path: Path) -> None:
    assert problems_of(tmp_path, ENTRY + ENTRY) != []


def test_no_finding_is_a_report_that_upstream_has() -> None:
    """A report that a shipped kernel shows is in the corpus of reports; a finding about its kernel names the issue."""
    reported = {
        pattern.strip(): issue
        for issue, report in known_wrong.load().items()
        if report.cause is not None and report.cause.kernel is not None and report.cause.wrong_in is not None
        for pattern in report.cause.kernel.split(",")
    }
    for finding in found_wrong.of_kernels().values():
        issues = {
            reported[pattern.strip()] for pattern in str(finding.kernel).split(",") if pattern.strip() in reported
        }
        assert issues <= {finding.issue}, finding.name
