"""The report as Markdown, to be read on a code host and to be compared between runs.

Two runs of the same code give the same text.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from tabulate import tabulate

from ..audit.findings.results import AuditSummary
from . import compiled_tables, module_tables, shipped_tables, tables
from .tables import Cell, Table
from .wording import key_figures, settings_text, simulated_note, subtitle, surface_note, title

SPECIAL = re.compile(r"([\\`*_\[\]<>|#])")


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
    blocks = [_head(summary), *(_section(table) for table in shown if table.rows)]
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


def _section(table: Table) -> str:
    rows = [
        [_cell(cell, column in table.code, table.links) for column, cell in zip(table.columns, row, strict=True)]
        for row in table.rows
    ]
    numeric = [all(isinstance(row[i], int) for row in table.rows) for i in range(len(table.columns))]
    text = tabulate(
        rows,
        headers=[escaped(column) for column in table.columns],
        tablefmt="pipe",
        disable_numparse=True,
        colalign=["right" if is_numeric else "left" for is_numeric in numeric],
    )
    parts = [f"## {escaped(table.heading)}", escaped(table.note), unpadded(text)]
    return "\n\n".join(part for part in parts if part)


def unpadded(text: str) -> str:
    """The table without the padding that would change every line whenever one cell gets wider."""
    lines = text.splitlines()
    lines[1] = re.sub(r"-{3,}", "---", lines[1])
    return "\n".join(re.sub(r" {2,}(?=\|)", " ", re.sub(r"(?<=\|) {2,}", " ", line)) for line in lines)


def _cell(cell: Cell, code: bool, links: Mapping[str, str]) -> str:
    if isinstance(cell, int):
        return f"{cell:,}"
    if cell in links:
        return f"[{escaped(cell)}]({links[cell]})"
    return f"`{cell}`".replace("|", "\\|") if code and cell else escaped(cell)


def escaped(text: str) -> str:
    """The text with everything that Markdown would take for markup escaped, on one line."""
    return SPECIAL.sub(r"\\\1", " ".join(text.split()))
