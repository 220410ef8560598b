"""The tables about torch.mps itself and about upstream reports of wrong results."""

from __future__ import annotations

from collections import Counter

from ..audit.findings.known_reports import ReportResult, ReportStatus, in_words
from ..audit.findings.results import AuditSummary
from ..audit.store.records import ModuleStatus
from .audit_tables import number_of
from .table import Cell, Table
from .wording import graded, marked

# In a list, what does not work comes first; "missing" is before "not probed", and what works is last.
ORDER = (ModuleStatus.FAILS, ModuleStatus.MISSING, ModuleStatus.NOT_PROBED, ModuleStatus.WORKS)
STATUSES = tuple(ReportStatus)
SHOW_NO_FAULT = (ReportStatus.RIGHT, ReportStatus.DISPATCH_ONLY, ReportStatus.NOT_TRIED)


def module_table(summary: AuditSummary, *, faults_only: bool = False) -> Table:
    """A row for each public name of torch.mps, failing names first. `faults_only`: without the names that work."""
    counts = Counter(row.status for row in summary.module)
    rows: list[tuple[Cell, ...]] = [
        (row.name, row.status.value, row.detail)
        for row in sorted(summary.module, key=lambda row: ORDER.index(row.status))
        if not faults_only or row.status is not ModuleStatus.WORKS
    ]
    counted = ", ".join(f"{counts[status]:,} {status.value}" for status in ModuleStatus if counts[status])
    note = f"The module's own surface, each name probed in a worker process: {counted}."
    columns = ("name", "status", "what it did")
    return Table(marked("torch.mps itself", summary), columns, tuple(rows), note, frozenset({"name"}))


def known_report_table(summary: AuditSummary, *, faults_only: bool = False) -> Table:
    """Each upstream report with its result here, those still wrong first, and the label of its case.

    `faults_only`: only faults, with the number of the case; not reports that are right, untried or computed by the CPU.
    """
    reports = sorted(summary.known_reports, key=lambda report: (STATUSES.index(report.status), report.issue))
    rows: list[tuple[Cell, ...]] = [
        (
            f"#{r.issue}",
            r.status.value,
            graded(r.grade),
            r.wrong_class,
            r.summary,
            ", ".join(r.overloads),
            r.affected,
            case,
        )
        for r in reports
        for case in [_case(summary, r, numbers=faults_only)]
        if not faults_only or r.status not in SHOW_NO_FAULT
    ]
    columns = ("issue", "here", "grade", "class", "report", "overloads", "seen in torch", "case")
    words = in_words(summary.known_reports, simulated=summary.run.simulated)
    return Table(
        marked("Known upstream reports", summary),
        columns,
        tuple(rows) if words else (),
        f"{words}. What users reported in pytorch/pytorch, as cases that run before all others.",
        frozenset({"overloads", "case"}),
        {f"#{r.issue}": r.url for r in reports},
    )


def _case(summary: AuditSummary, report: ReportResult, *, numbers: bool) -> Cell:
    """The case that is still wrong; none if the report is settled."""
    if report.status is not ReportStatus.STILL_WRONG or report.worst_case is None:
        return ""
    return number_of(summary, report.worst_case) if numbers else report.worst_case
