"""The pages of operators: everything in its column, and nothing of a stranger's file becomes markup."""

from __future__ import annotations

import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import pytest

from mpsmith.audit.findings.results import AuditSummary
from mpsmith.reports.evidence.checking import problems_of
from mpsmith.reports.evidence.devices import findings_by_device
from mpsmith.reports.evidence.schema import EvidenceFile
from mpsmith.reports.site.content import SiteContent
from mpsmith.reports.site.devices import file_names
from mpsmith.reports.site.writing import files, write_site
from support.audits import make_summary
from support.evidence_files import NOW, evidence, hostile_evidence

WRONG, PASSES = ({"aten::mode": {"float32": {verdict: 2}}} for verdict in ("wrong", "passed"))


@pytest.fixture(scope="module")
def summary(tmp_path_factory: pytest.TempPathFactory) -> AuditSummary:
    return make_summary(tmp_path_factory.mktemp("audit") / "store.sqlite")


def pages(summary: AuditSummary, *given: EvidenceFile) -> dict[str, str]:
    return dict(files(SiteContent(summary, devices=findings_by_device(given))))


class Cells(HTMLParser):
    """The rows of all tables of a page, as texts of cells."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.rows: list[list[str]] = []
        self._inside = False
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag == "tr":
            self.rows.append([])
        elif tag in ("td", "th"):
            self.rows[-1].append("")
            self._inside = True

    def handle_endtag(self, tag: str) -> None:
        if tag in ("td", "th"):
            self._inside = False

    def handle_data(self, data: str) -> None:
        if self._inside:
            self.rows[-1][-1] += data


def row_of(page: str, first: str) -> list[str]:
    return next(row for row in Cells(page).rows if row and row[0] == first)


def test_an_operator_has_a_page_with_a_column_for_each_device(summary: AuditSummary) -> None:
    page = pages(summary, evidence(PASSES), evidence(WRONG, chip="Apple M1"))["operators/mode.html"]
    assert row_of(page, "torch")[:5] == [
        "torch",
        "from the wheel",
        "SIMULATED",
        "Apple M1, macOS 15",
        "Apple M3, macOS 15",
    ]
    assert row_of(page, "2.13.0") == ["2.13.0", "missing", "missing", "wrong 2026-01-02", "native 2026-01-02"]
    assert row_of(page, "2.7.1")[2:] == ["", "", ""]
    assert "Real devices disagree with torch 2.13.0" in page
    assert "SIMULATED" in page.partition("<main")[0]


def test_a_page_without_evidence_says_so(summary: AuditSummary) -> None:
    shown = pages(summary)
    assert "Not tested on a Mac yet." in shown["operators/relu.html"]
    assert row_of(shown["operators/relu.html"], "torch") == ["torch", "from the wheel", "SIMULATED"]
    assert row_of(shown["operators/relu.html"], "2.13.0")[2] == "native"


def test_every_operator_of_the_audit_or_of_a_device_has_a_page(summary: AuditSummary) -> None:
    shown = pages(summary, evidence({"aten::sort": {"float32": {"passed": 1}}}))
    expected = {operator.name for operator in summary.operators} | {"aten::sort"}
    titles = {re.search(r"<h1>(.*)</h1>", text)[1] for name, text in shown.items() if name.startswith("operators/")}  # type: ignore[index]
    assert titles == expected


def test_markup_in_evidence_stays_text_on_every_page(summary: AuditSummary) -> None:
    assert problems_of(hostile_evidence(), NOW) == []
    usual, hostile = pages(summary), pages(summary, hostile_evidence())
    changed = [name for name, text in hostile.items() if usual.get(name) != text]
    assert "operators/mode.html" in changed
    shown = "&lt;img src=x onerror=alert(1)&gt;"
    for name in changed:
        assert "<img" not in hostile[name], name
        assert "</td><script>" not in hostile[name], name
    assert shown in hostile["operators/mode.html"]


def test_pages_are_found_on_any_disk() -> None:
    names = ["aten::T", "aten::t", "aten::__and__", "aten::é", "aten::è", "other::t", "aten::" + "x" * 500]
    named = file_names(names, "operators/")
    assert len({file.lower() for file in named.values()}) == len(names)
    assert all(re.fullmatch(r"operators/[a-z0-9_-]{1,90}\.html", file) for file in named.values())
    assert named["aten::__and__"] == "operators/__and__.html"


def test_removes_pages_of_operators_and_devices_that_are_gone(summary: AuditSummary, tmp_path: Path) -> None:
    site = tmp_path / "site"
    write_site(
        SiteContent(summary, devices=findings_by_device([evidence({"aten::sort": {"float32": {"passed": 1}}})])), site
    )
    gone = [site / "operators" / "sort.html", site / "device-of-an-earlier-site.html"]
    gone[1].write_text("old")
    assert all(path.exists() for path in gone)
    write_site(SiteContent(summary), site)
    assert not any(path.exists() for path in gone)
    assert (site / "operators" / "mode.html").exists()


def test_a_real_audit_is_a_column_of_a_real_device(summary: AuditSummary, tmp_path: Path) -> None:
    environment = {**summary.run.environment, "simulated": False, "chip": "Apple M4", "os": "macOS-26.1-arm64"}
    real = replace(summary, run=replace(summary.run, simulated=False, environment=environment))
    page = pages(real, evidence(PASSES))["operators/mode.html"]
    assert row_of(page, "torch")[2:] == ["Apple M3, macOS 15", "Apple M4, macOS 26"]
    assert "SIMULATED" not in page
