"""The report as Markdown, for code hosts and for comparing runs.

Two runs of the same code give the same text.
"""

from __future__ import annotations

from ..audit.findings.results import AuditSummary
from . import audit_tables, compiled_tables, module_tables, run_tables, shipped_tables
from .table import Document, escaped
from .wording import key_figures, settings_text, simulated_note, subtitle, surface_note, title


def render(summary: AuditSummary) -> str:
    """The report as Markdown text (GitHub's flavour)."""
    shown = [
        audit_tables.at_fault_table(summary),
        audit_tables.unexplained_table(summary),
        audit_tables.rule_table(summary),
        audit_tables.verdict_table(summary),
        run_tables.grade_table(summary),
        shipped_tables.shipped_table(summary),
        shipped_tables.wrong_kernel_table(summary),
        run_tables.case_table(summary),
        run_tables.dtype_table(summary),
        audit_tables.fallback_table(summary),
        compiled_tables.right_when_compiled_table(summary),
        compiled_tables.break_table(summary),
        audit_tables.breakage_table(summary),
        *audit_tables.fault_tables(summary),
        audit_tables.map_table(summary),
        module_tables.known_report_table(summary),
        module_tables.module_table(summary),
        audit_tables.disagreement_table(summary),
        audit_tables.unattributed_table(summary),
        run_tables.pairs_table(summary),
        run_tables.without_effect_table(summary),
        run_tables.skip_table(summary),
        run_tables.not_executed_table(summary),
        run_tables.missed_table(summary),
        shipped_tables.stand_in_table(summary),
        shipped_tables.never_launched_table(summary),
        run_tables.environment_table(summary),
    ]
    return Document(escaped(title(summary)), _head(summary), shown).markdown()


def _head(summary: AuditSummary) -> list[str]:
    lines = [f"{escaped(subtitle(summary).capitalize())}; {settings_text(summary.run.settings)}."]
    if summary.run.simulated:
        lines.append(f"> **SIMULATED.** {escaped(simulated_note(summary))}")
    note = surface_note(summary)
    if note:
        lines.append(f"> {escaped(note)}")
    lines.append("\n".join(f"- {escaped(sentence)}" for sentence in key_figures(summary)))
    lines.append(
        "Every case can be run again by its label here: `mpsmith replay 'opinfo:mode:float32:0'`. "
        "`make audit` writes the page to search in, a CSV with a row for every overload, and a JSON with all the "
        "evidence beside this file."
    )
    return lines
