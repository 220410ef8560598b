"""How upstream reports stand in a run, and that every report shows it with a link and a mark where simulated."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from mpsmith.audit.findings.known_reports import ReportStatus, in_words
from mpsmith.audit.findings.results import AuditSummary
from mpsmith.audit.findings.summary import summarize
from mpsmith.audit.findings.summary_filter import select
from mpsmith.audit.model.group import GroupKey
from mpsmith.audit.model.verdicts import CaseVerdict, Grade, Outcome
from mpsmith.audit.releases.surface.overloads import Dispatch
from mpsmith.audit.store.records import ModuleRow, ModuleStatus
from mpsmith.reports import csv_report, json_report, markdown, terminal
from mpsmith.reports.site.content import SiteContent
from mpsmith.reports.site.writing import files
from support.stores import Recording, begun, new_store
from support.surfaces import overload, surface

SURFACE = surface(overload("where.self", Dispatch.NATIVE, "Tensor condition, Tensor self, Tensor other"))
URL = "https://github.com/pytorch/pytorch/issues/150967"


@dataclass
class Built(Recording):
    def case(self, issue: int, operator: str, verdict: CaseVerdict, grade: Grade | None = Grade.SHIPPED_KERNEL) -> None:
        key = GroupKey("known wrong", operator, f"#{issue}", "float32", "fallback")
        self.add(key, Outcome(verdict, message="odd"), inputs="x", grade=grade)

    def summary(self) -> AuditSummary:
        return summarize(self.store, self.run, SURFACE)


@pytest.fixture
def built(tmp_path: Path) -> Iterator[Built]:
    with new_store(tmp_path) as store:
        recording = begun(store, {"seed": 0, "ops": [], "dtypes": []}, {"profile": None, "variables": {}})
        yield Built(store, recording.run)


@pytest.mark.parametrize(
    ("verdicts", "expected"),
    [
        ([CaseVerdict.PASSED, CaseVerdict.PASSED], ReportStatus.RIGHT),
        ([CaseVerdict.PASSED, CaseVerdict.WRONG], ReportStatus.STILL_WRONG),
        ([CaseVerdict.PASSED, CaseVerdict.CRASH], ReportStatus.STILL_WRONG),
        ([CaseVerdict.TIMEOUT], ReportStatus.STILL_WRONG),
        ([CaseVerdict.DTYPE_GAP], ReportStatus.STILL_WRONG),
        ([CaseVerdict.PASSED, CaseVerdict.FALLBACK], ReportStatus.ON_CPU),
        ([CaseVerdict.FALLBACK, CaseVerdict.MISSING], ReportStatus.MISSING),
        ([CaseVerdict.SKIPPED], ReportStatus.NOT_TRIED),
        ([CaseVerdict.REFERENCE_FAILED], ReportStatus.NOT_TRIED),
        ([], ReportStatus.NOT_TRIED),
    ],
)
def test_the_worst_case_decides_the_status_of_a_report(
    built: Built, verdicts: list[CaseVerdict], expected: ReportStatus
) -> None:
    for verdict in verdicts:
        built.case(150967, "where", verdict)
    (report,) = [report for report in built.summary().known_reports if report.issue == 150967]
    assert report.status is expected
    assert report.url == URL


@pytest.mark.parametrize("verdict", [CaseVerdict.PASSED, CaseVerdict.WRONG])
def test_a_defect_whose_operator_the_cpu_computed_is_not_right_here(built: Built, verdict: CaseVerdict) -> None:
    built.case(150967, "where", CaseVerdict.PASSED)
    built.case(150967, "where", verdict, grade=None)  # of the simulated device itself
    reports = built.summary().known_reports
    (report,) = [report for report in reports if report.issue == 150967]
    wrong = verdict is CaseVerdict.WRONG
    assert report.status is (ReportStatus.STILL_WRONG if wrong else ReportStatus.DISPATCH_ONLY)
    assert report.grade is Grade.SHIPPED_KERNEL
    if not wrong:
        assert ", 0 right here, 1 dispatch only, " in in_words(reports, simulated=False)
        shown = markdown.render(built.summary())
        assert f"[\\#150967]({URL}) | dispatch only" in shown
        assert "#150967" not in terminal.render(built.summary(), 120)


def test_the_sentence_counts_every_report_once_and_marks_a_simulation(built: Built) -> None:
    assert in_words(built.summary().known_reports, simulated=True) == ""
    built.case(150967, "where", CaseVerdict.WRONG)
    built.case(96558, "flip", CaseVerdict.PASSED)
    reports = built.summary().known_reports
    rest = len(reports) - 2
    counted = "Known upstream reports: 2 tried, 1 still wrong{0}, 1 right here{0}, {1} not tried"
    assert in_words(reports, simulated=True) == counted.format(" (simulated)", rest)
    assert in_words(reports, simulated=False) == counted.format("", rest)


@pytest.fixture
def summary(built: Built) -> AuditSummary:
    built.case(150967, "where", CaseVerdict.WRONG)
    built.case(96558, "flip", CaseVerdict.PASSED)
    for name, status in (("works", ModuleStatus.WORKS), ("fails", ModuleStatus.FAILS), ("gone", ModuleStatus.MISSING)):
        built.store.add_module_row(built.run.id, ModuleRow(f"torch.mps.{name}", status, f"it {name}"))
    return built.summary()


def test_markdown_and_the_page_link_the_issue_and_list_the_module(summary: AuditSummary) -> None:
    text = markdown.render(summary)
    assert f"[\\#150967]({URL}) | still wrong" in text
    assert "## Known upstream reports (SIMULATED)" in text
    assert "## torch.mps itself (SIMULATED)" in text
    assert "| `torch.mps.fails` | present, fails | it fails |" in text
    page = dict(files(SiteContent(summary)))["findings.html"]
    assert f'<a href="{URL}">#150967</a>' in page
    assert "<code>torch.mps.gone</code>" in page


def test_a_terminal_shows_unsettled_reports(summary: AuditSummary) -> None:
    text = terminal.render(summary, 120)
    assert "Known upstream reports: 2 tried, 1 still wrong (simulated), 1 right here (simulated)" in text
    assert "#150967" in text
    assert "#96558" not in text
    assert "torch.mps itself (SIMULATED)" in text
    assert "torch.mps.fails" in text
    assert "torch.mps.works" not in text


def test_csv_and_json_hold_both(summary: AuditSummary) -> None:
    rows = {row["overload"]: row for row in csv.DictReader(io.StringIO(csv_report.render(summary)))}
    assert rows["aten::where.self"]["known_reports"] == "150967:still wrong"
    module = rows["torch.mps.fails"]
    assert (module["operator"], module["verdict"], module["reason"], module["device"]) == (
        *("torch.mps itself", "present, fails", "it fails"),
        "simulated",
    )
    data = json.loads(json_report.render(summary))["summary"]
    assert data["module"][0] == {"name": "torch.mps.fails", "status": "present, fails", "detail": "it fails"}
    assert json_report.read(json_report.render(summary)) == replace(summary, execution=None)


def test_a_part_of_a_report_keeps_the_reports_of_its_overloads(summary: AuditSummary) -> None:
    part = select(summary, patterns=["where"])
    assert {report.issue for report in part.known_reports} == {150967}
    assert part.module == ()


def test_an_unmarked_run_is_a_real_one(summary: AuditSummary) -> None:
    real = replace(summary, run=replace(summary.run, simulated=False))
    assert "1 still wrong, 1 right here" in markdown.render(real)
