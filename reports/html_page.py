"""The report as one HTML file that needs nothing else: style, scripts and data are inside, and it opens from disk."""

from __future__ import annotations

from ..audit.findings.results import AuditSummary
from . import audit_tables, compiled_tables, module_tables, run_tables, shipped_tables
from .explorer_data import details, entry_table, legend, operator_table, overload_table
from .html_templates import SINGLE_FILE_SCRIPTS, HtmlPage, data_script, slug
from .operator_facts import operator_facts
from .overview import overview
from .release_coverage import section_of
from .release_history import history_of
from .table import Table
from .wording import settings_text, simulated_note, subtitle, title


def render(summary: AuditSummary) -> str:
    """The report as the text of an HTML page."""
    page = HtmlPage(
        file="",
        title=title(summary),
        subtitle=f"{subtitle(summary)} · {settings_text(summary.run.settings)}",
        simulated_note=simulated_note(summary),
        scripts=SINGLE_FILE_SCRIPTS,
        data=data_of(summary),
        wide=True,
        inline=True,
    )
    listed = [*finding_tables(summary), *compiled(summary), *tables_of_run(summary)]
    links = {heading: f"#{slug(heading)}" for heading in map(heading_of, listed)}
    return page.render("report.html.j2", audit=overview(summary, links), tables=listed, coverage=section_of(summary))


def data_of(summary: AuditSummary) -> list[str]:
    """The data of the explorer as scripts, all of them."""
    history = history_of(summary)
    facts = operator_facts(summary, history)
    named = {
        "legend": legend(summary, history),
        "operators": operator_table(summary, facts),
        "overloads": overload_table(summary, {}),
        "entries": entry_table(summary),
    }
    parts = {f"details/{number:02}": part for number, part in enumerate(details(summary, facts))}
    return [data_script(name, data) for name, data in {**named, **parts}.items()]


def heading_of(table: Table) -> str:
    """The heading without the mark of a simulated run, which pages show in another way."""
    return table.heading.replace(" (SIMULATED)", "")


def finding_tables(summary: AuditSummary) -> list[Table]:
    """The tables of findings and their reasons that have rows."""
    return _with_rows(
        audit_tables.at_fault_table(summary),
        audit_tables.unexplained_table(summary),
        audit_tables.breakage_table(summary),
        shipped_tables.wrong_kernel_table(summary),
        module_tables.known_report_table(summary),
        audit_tables.fallback_table(summary),
        audit_tables.rule_table(summary),
        audit_tables.disagreement_table(summary),
        audit_tables.unattributed_table(summary),
        module_tables.module_table(summary),
    )


def compiled(summary: AuditSummary) -> list[Table]:
    """The tables about torch.compile."""
    return _with_rows(compiled_tables.cure_table(summary), compiled_tables.break_table(summary))


def tables_of_run(summary: AuditSummary) -> list[Table]:
    """The tables about the run: executed cases, grades, environment."""
    return _with_rows(
        run_tables.grade_table(summary),
        run_tables.case_table(summary),
        run_tables.dtype_table(summary),
        shipped_tables.shipped_table(summary),
        shipped_tables.stood_in_table(summary),
        shipped_tables.never_launched_table(summary),
        run_tables.skip_table(summary),
        run_tables.not_executed_table(summary),
        run_tables.missed_table(summary),
        run_tables.environment_table(summary),
    )


def _with_rows(*found: Table) -> list[Table]:
    return [table for table in found if table.rows]
