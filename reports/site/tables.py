"""The tables of the site's pages: findings, torch.compile, and the run."""

from __future__ import annotations

from ...audit.findings.results import AuditSummary
from .. import audit_tables, compiled_tables, module_tables, run_tables, shipped_tables
from ..table import Table


def heading_of(table: Table) -> str:
    """The heading without the mark of a simulated run, which pages show differently."""
    return table.heading.replace(" (SIMULATED)", "")


def finding_tables(summary: AuditSummary) -> list[Table]:
    """The tables of findings and their reasons that have rows."""
    return _with_rows(
        audit_tables.at_fault_table(summary),
        audit_tables.unexplained_table(summary),
        audit_tables.breakage_table(summary),
        module_tables.known_report_table(summary),
        audit_tables.fallback_table(summary),
        audit_tables.rule_table(summary),
        audit_tables.disagreement_table(summary),
        audit_tables.unattributed_table(summary),
        module_tables.module_table(summary),
    )


def compiled(summary: AuditSummary) -> list[Table]:
    """The tables about torch.compile."""
    return _with_rows(compiled_tables.right_when_compiled_table(summary), compiled_tables.break_table(summary))


def tables_of_run(summary: AuditSummary) -> list[Table]:
    """The tables about the run: executed cases, grades, environment."""
    return _with_rows(
        run_tables.grade_table(summary),
        run_tables.case_table(summary),
        run_tables.dtype_table(summary),
        shipped_tables.shipped_table(summary),
        shipped_tables.stand_in_table(summary),
        shipped_tables.never_launched_table(summary),
        run_tables.without_effect_table(summary),
        run_tables.skip_table(summary),
        run_tables.not_executed_table(summary),
        run_tables.missed_table(summary),
        run_tables.environment_table(summary),
    )


def _with_rows(*tables: Table) -> list[Table]:
    return [table for table in tables if table.rows]
