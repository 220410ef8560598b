"""The report of a run under torch.compile, beside what the registry knows of the calls as they are."""

from __future__ import annotations

from collections import Counter

import pytest

from mpsmith.audit.compiled.verdicts import CompiledVerdict, FaultyStage
from mpsmith.audit.findings.compiled.summary import CompiledFinding, CompiledOperator, CompiledSummary
from mpsmith.audit.store.records import Run
from mpsmith.reports import compiled_report
from support.json_document import documented

RUN = Run(3, "2026-11-22", "2026-11-22", {"compiled": "static"}, {"torch": "2.13.0", "simulated": True})
EAGER = {"aten::mode": "missing", "aten::batch_norm": "composite", "aten::sin": "native"}


def operator(name: str, verdict: CompiledVerdict) -> CompiledOperator:
    return CompiledOperator(name, verdict, {"float32": verdict, "int64": CompiledVerdict.METAL}, (), (), 2, 1, 0, ())


OPERATORS = (
    operator("mode", CompiledVerdict.METAL),
    operator("nn.functional.batch_norm", CompiledVerdict.WRONG),
    operator("sin", CompiledVerdict.METAL),
)
FINDING = CompiledFinding(
    "nn.functional.batch_norm",
    CompiledVerdict.WRONG,
    FaultyStage.INDUCTOR,
    "input 1 after the call: 5 | 5 elements differ",
    "",
    "opinfo:nn.functional.batch_norm:float32:0:compiled",
    "(float32[3])",
    ("float32",),
    1,
    False,
    "kernel void f() {}",
    1234567.0,
    "U1",
)
COUNTS = Counter({CompiledVerdict.METAL: 5, CompiledVerdict.WRONG: 1, CompiledVerdict.SKIPPED: 2})
SUMMARY = CompiledSummary(RUN, OPERATORS, (FINDING,), COUNTS)


@pytest.mark.parametrize(("position", "word"), [(0, "cure"), (1, "breaks"), (2, "")])
def test_compiling_cures_or_breaks(position: int, word: str) -> None:
    assert compiled_report.against_eager(OPERATORS[position], EAGER) == word


class TestTerminalLines:
    def test_lines_at_the_end_of_an_audit(self) -> None:
        lines = compiled_report.terminal_lines(SUMMARY, EAGER)
        assert lines[0] == "run 3 on the SIMULATED mps device, every call under torch.compile: 6 cases executed"
        assert "  3 operators: 2 metal, 1 wrong" in lines
        assert "  compiled, Metal does what mps lacks: mode" in lines
        assert "  works until it is compiled: nn.functional.batch_norm" in lines
        said = "Inductor's Metal, 1.23e+06 times the tolerance, looks like U1"
        assert any("  1 of 1 findings look like known defects" in line for line in lines)
        assert lines[-2].startswith(f"  wrong ({said}): opinfo:nn.functional.batch_norm:float32:0:compiled: ")


class TestMarkdown:
    def test_every_finding_and_operator_has_its_row(self) -> None:
        text = compiled_report.markdown(SUMMARY, EAGER)
        assert "**SIMULATED.**" in text
        (row,) = [line for line in text.splitlines() if line.startswith("| wrong") and "Inductor's Metal" in line]
        assert "5 \\| 5 elements differ" in row
        assert "| 1.23e+06 | U1 |" in row
        assert text.count("| `sin`") == 1
        assert "## Compiling is the cure" in text


class TestJson:
    def test_a_finding_has_its_source(self) -> None:
        data = documented("report --compiled", compiled_report.as_json(SUMMARY, EAGER))
        assert data["findings"][0]["source"] == "kernel void f() {}"
        assert data["operators"]["mode"] == {
            "name": "mode",
            "verdict": "metal",
            "dtypes": {"float32": "metal", "int64": "metal"},
            "cases": 2,
            "breaks": 1,
            "eager": "missing",
            "against_eager": "cure",
        }
