"""Coverage of releases as HTML: a section for the report, and a page of its own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from ..audit.coverage import ReleaseCoverage, from_data
from ..audit.coverage.history import ReleaseCounts, history
from ..audit.coverage.table import AuditVerdicts, OperatorRow, Standing, operator_rows
from ..audit.findings.results import AuditSummary, RegistryStatus
from ..audit.releases import data as release_data
from ..errors import MpsmithError
from .coverage_cells import HISTORY_TITLES, OPERATOR_TITLES, history_cells, operator_cells
from .coverage_chart import history_svg

TEMPLATES = Path(__file__).parent / "templates"

_PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>{title}</title>
<style>body {{ font: 16px system-ui, sans-serif; margin: 2rem auto; max-width: 80rem; padding: 0 1rem }}</style>
</head>
<body>
{section}
</body>
</html>
"""


def section(
    coverage: ReleaseCoverage, rows: Sequence[OperatorRow], counts: Sequence[ReleaseCounts], *, interactive: bool
) -> Markup:
    """The section: chart and figures of all releases, and the joined table of one release.

    `interactive` adds search and filters, with a script of their own. Operators that are composed of others are left
    out of the table: they need no kernel. Verdicts that no Mac has shown say `simulated`.
    """
    needing = [row for row in rows if row.standing is not Standing.COMPOSITE]
    environment = Environment(loader=FileSystemLoader(TEMPLATES), autoescape=True, undefined=StrictUndefined)
    text = environment.get_template("coverage.html.j2").render(
        release=coverage.release,
        source=f"Torch {coverage.release}: {coverage.source}",
        chart=Markup(history_svg(counts, inline=True)),
        interactive=interactive,
        simulated=any(row.measured_on == "simulated" for row in rows),
        history_titles=HISTORY_TITLES,
        history_rows=[history_cells(count) for count in counts],
        standings=[standing.value for standing in Standing if standing is not Standing.COMPOSITE],
        operator_titles=OPERATOR_TITLES,
        operator_rows=[operator_cells(row) for row in needing],
        drift_column=OPERATOR_TITLES.index("drift"),
    )
    return Markup(text)


def section_of(summary: AuditSummary) -> Markup:
    """The section for a report: the release whose coverage was audited, with this audit's verdicts beside it.

    Empty for a release that the committed data do not have.
    """
    data = release_data.load()
    try:
        position = data.index(str(summary.run.environment.get("profile") or summary.surface_release))
    except MpsmithError:
        return Markup("")
    coverage = from_data(data, position)
    verdicts = {operator.name: operator.verdict.value for operator in summary.operators}
    grades = {operator.name: operator.grade.value for operator in summary.operators if operator.grade}
    audit = AuditVerdicts(verdicts, "simulated" if summary.run.simulated else "mps", grades)
    known = {operator.name: operator.registered for operator in summary.operators}
    rows = [_with_registry(row, known) for row in operator_rows(coverage, data, audit=audit)]
    return section(coverage, rows, _committed_history(), interactive=False)


@cache
def _committed_history() -> tuple[ReleaseCounts, ...]:
    return history(release_data.load())


def _with_registry(row: OperatorRow, known: Mapping[str, RegistryStatus | None]) -> OperatorRow:
    registered = known.get(f"aten::{row.operator}") or known.get(f"aten::{row.operator}_")
    return replace(row, status=registered.status, replacement=registered.kernel) if registered else row


def page(coverage: ReleaseCoverage, rows: Sequence[OperatorRow], counts: Sequence[ReleaseCounts]) -> str:
    """The section as a page that needs nothing else."""
    title = f"MPS coverage of torch {coverage.release}"
    return _PAGE.format(title=title, section=section(coverage, rows, counts, interactive=True))
