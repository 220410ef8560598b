"""The report as Markdown, to be read on a code host and to be compared between runs.

Two runs of the same code give the same text.
"""

from __future__ import annotations

from ..audit.findings.results import AuditSummary
from . import compiled_tables, module_tables, shipped_tables, tables
from .table import escaped, markdown_section
from .wording import key_figures, settings_text, simulated_note, subtitle, surface_note, title


def render(summary: AuditSummary) -> str:
    """The report as Markdown text (GitHub's flavour)."""
    shown = [
        tables.at_fault_table(summary),
        tables.unexplained_table(summary),
        tables.rule_table(summary),
        tables.verdict_table(summary),
        tables.grade_table(summary),
        shipped_tables.shipped_table(summary),
        shipped_tables.wrong_kernel_table(summary),
        tables.case_table(summary),
        tables.dtype_table(summary),
        tables.fallback_table(summary),
        compiled_tables.cure_table(summary),
        compiled_tables.break_table(summary),
        tables.breakage_table(summary),
        *tables.fault_tables(summary),
        tables.map_table(summary),
        module_tables.known_report_table(summary),
        module_tables.module_table(summary),
        tables.disagreement_table(summary),
        tables.unattributed_table(summary),
        tables.pairs_table(summary),
        tables.skip_table(summary),
        tables.not_executed_table(summary),
        tables.missed_table(summary),
        shipped_tables.stood_in_table(summary),
        shipped_tables.never_launched_table(summary),
        tables.environment_table(summary),
    ]
    blocks = [_head(summary), *(markdown_section(table) for table in shown if table.rows)]
    return "\n\n".join(blocks) + "\n"


def _head(summary: AuditSummary) -> str:
    lines = [
        f"# {escaped(title(summary))}",
        f"{escaped(subtitle(summary).capitalize())}; {settings_text(summary.run.settings)}.",
    ]
    if summary.run.simulated:
        lines.append(f"> **SIMULATED.** {escaped(simulated_note(summary))}")
    note = surface_note(summary)
    if note:
        lines.append(f"> {escaped(note)}")
    lines.append("\n".join(f"- {escaped(sentence)}" for sentence in key_figures(summary)))
    lines.append(
        "Every case can be run again by the name that stands here: `mpsmith replay 'opinfo:mode:float32:0'`. "
        "`make audit` writes the page to search in, a CSV with a row for every overload, and a JSON with all the "
        "evidence beside this file."
    )
    return "\n\n".join(lines)
