"""An audit under torch.compile beside the audit of calls as they are: where compiling cures, and where it breaks."""

from __future__ import annotations

from pathlib import Path

import pytest

from mpsmith.audit.compiled.verdicts import CompiledOutcome, CompiledVerdict
from mpsmith.audit.findings.compiled.eager_comparison import CompiledLane, EagerComparison, compare_with_eager
from mpsmith.audit.findings.results import AuditSummary
from mpsmith.audit.findings.summary import summarize
from mpsmith.audit.model.group import COMPILED
from mpsmith.audit.model.verdicts import CaseVerdict, Outcome, OverloadVerdict
from mpsmith.audit.releases.surface.overloads import Dispatch
from mpsmith.audit.store.store import Store
from mpsmith.reports import csv_report, json_report, markdown, terminal
from mpsmith.reports.explorer_data import legend, operator_table
from mpsmith.reports.operator_facts import operator_facts
from mpsmith.reports.site.content import SiteContent
from mpsmith.reports.site.writing import files
from support.stores import begun, new_store, opinfo
from support.surfaces import overload, surface

METAL, WRONG = CompiledVerdict.METAL, CompiledVerdict.WRONG
PASSED = Outcome(CaseVerdict.PASSED)
SURFACE = surface(
    overload("mode", Dispatch.MISSING), overload("sin", Dispatch.NATIVE), overload("cos", Dispatch.NATIVE)
)


def with_both_audits(store: Store, *, torch: str = "2.13.0") -> AuditSummary:
    """The summary of an eager run in a store that has a compiled one: mode is right compiled, and sin wrong."""
    compiled = begun(store, {"compiled": "static"}, {"torch": torch})
    for name, verdict in (("mode", METAL), ("sin", WRONG)):
        key = opinfo(name, mode=COMPILED)
        compiled.add(key, PASSED)
        group = next(group.id for group in store.groups(compiled.run.id) if group.key == key)
        store.add_compiled(group, 0, CompiledOutcome(verdict, PASSED))
    compiled.finish()
    eager = begun(store)
    fell_back = Outcome(CaseVerdict.FALLBACK, fallbacks=("aten::mode",))
    eager.add(opinfo("mode"), fell_back, calls={"mode": True})
    for name in ("sin", "cos"):
        eager.add(opinfo(name), PASSED, calls={name: True})
    return summarize(store, eager.finish(), SURFACE)


@pytest.fixture
def summary(tmp_path: Path) -> AuditSummary:
    with new_store(tmp_path) as store:
        return with_both_audits(store)


class TestBesideTheCallsAsTheyAre:
    def test_fallbacks_right_in_metal_are_cured_and_wrong_results_are_broken(self, summary: AuditSummary) -> None:
        assert {o.name: o.compiled for o in summary.operators} == {
            "aten::mode": EagerComparison(METAL, {"float32": METAL}, cures=("float32",)),
            "aten::sin": EagerComparison(WRONG, {"float32": WRONG}, breaks=("float32",)),
            "aten::cos": None,
        }
        assert summary.compiled is not None
        (sin,) = summary.compiled.findings
        assert (sin.verdict, sin.operator, sin.example) == (WRONG, "sin", "opinfo:sin:float32:0:compiled")
        assert summary.compiled == CompiledLane(2, ("float32",), {METAL: 1, WRONG: 1}, (sin,))

    def test_ignores_a_compiled_audit_of_another_torch(self, tmp_path: Path) -> None:
        with new_store(tmp_path) as store:
            summary = with_both_audits(store, torch="2.12.0")
        assert summary.compiled is None
        assert all(operator.compiled is None for operator in summary.operators)

    def test_only_calls_that_all_work_are_broken_by_compiling(self) -> None:
        eager = {"float32": OverloadVerdict.NATIVE, "int64": OverloadVerdict.WRONG}
        partly = {"float32": [CaseVerdict.WRONG]}
        assert compare_with_eager({"float32": WRONG}, eager, partly) == EagerComparison(WRONG, {"float32": WRONG})
        cured = compare_with_eager({"int64": METAL, "int8": METAL}, eager, {})
        assert cured == EagerComparison(METAL, {"int64": METAL, "int8": METAL}, cures=("int64",))


class TestReports:
    def test_markdown_and_terminal_name_both_kinds(self, summary: AuditSummary) -> None:
        for text in (markdown.render(summary), terminal.render(summary)):
            assert "Compile it: generated Metal is right where the call as it is is not" in text
            assert "Compiling breaks it: the eager call works" in text
            assert "cure for 1 operator here, and breaks 1 operator." in " ".join(text.split())
        assert "| `aten::mode` | float32 | fallback | metal |" in markdown.render(summary)
        assert "| `aten::sin` | float32 | native | wrong |" in markdown.render(summary)

    def test_the_page_has_a_column_and_the_json_and_csv_have_the_verdicts(self, summary: AuditSummary) -> None:
        assert legend(summary)["compiled"]
        data = operator_table(summary, operator_facts(summary, None))
        assert data["compiled"] == ["", "metal: cure", "wrong: breaks"]
        compiled_text = data["texts"][data["compiledText"][1]]
        assert (
            compiled_text
            == "under torch.compile: metal in float32. Compile it: the call as it is lacks or breaks float32"
        )
        assert json_report.read(json_report.render(summary)).operators == summary.operators
        assert "metal: cure" in csv_report.render(summary)

    def test_the_site_has_the_compiled_pages(self, summary: AuditSummary) -> None:
        page = dict(files(SiteContent(summary)))["compiled.html"]
        for heading in ("Found under torch.compile", "Compile it: generated Metal", "Compiling breaks it", "Operators"):
            assert f"<h2>{heading}" in page
        assert "opinfo:sin:float32:0:compiled" in page
        assert "Under torch.compile, 2 cases of float32, operators are: 1 metal, 1 wrong." in page

    def test_without_such_an_audit_nothing_is_shown(self, tmp_path: Path) -> None:
        with new_store(tmp_path) as store:
            summary = with_both_audits(store, torch="2.12.0")
        text = markdown.render(summary)
        assert "compiled.html" not in dict(files(SiteContent(summary)))
        assert "torch.compile" not in text
        assert "compiled" not in text
