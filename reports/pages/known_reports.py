"""The page of upstream reports that PyTorch's own host code shows again on Linux."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from ..table import Document, Table
from .page import PageInputs

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ...registry.known_wrong import KnownReport

_ISSUES = "https://github.com/pytorch/pytorch/issues/"


def document(inputs: PageInputs) -> Document:
    """The page of the host-code results in registry/known_wrong."""
    from ...registry import known_wrong

    return known_reports_document(sorted(known_wrong.load().values(), key=lambda report: report.issue))


def known_reports_document(reports: Iterable[KnownReport]) -> Document:
    """The reports that each release shows on each simulated macOS, and why others are not shown."""
    reports = list(reports)
    tried = [report for report in reports if report.host_code is not None]
    shown = [report for report in tried if report.host_code and report.host_code.shown_by]
    counts = Counter(
        (release, version)
        for report in shown
        if report.host_code
        for release, versions in report.host_code.shown_by.items()
        for version in versions
    )
    rows = [
        (
            f"#{report.issue}",
            report.wrong_class,
            "; ".join(f"{name} (macOS {', '.join(versions)})" for name, versions in report.host_code.shown_by.items()),
            report.host_code.not_shown or "",
            report.cause.part if report.cause else "",
        )
        for report in tried
        if report.host_code
    ]
    return Document(
        "Known reports in PyTorch's own host code",
        [
            "SIMULATED: host code and Metal source of a release ran on Linux, with a stand-in for MPSGraph. No Mac was "
            f"involved. {len(shown)} of {len(reports)} reports show their symptom with a release that was tried."
        ],
        [
            Table(
                "By release and macOS",
                ("host code", "macOS", "reports"),
                tuple((release, version, str(count)) for (release, version), count in sorted(counts.items())),
            ),
            Table(
                "Reports",
                ("report", "class", "shown by", "not shown because", "cause"),
                tuple(rows),
                links={f"#{report.issue}": f"{_ISSUES}{report.issue}" for report in tried},
            ),
        ],
    )
