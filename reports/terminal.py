"""The report for a terminal: the most important tables, fitted to its width."""

from __future__ import annotations

import textwrap
from dataclasses import replace

from tabulate import tabulate

from ..audit.findings.results import AuditSummary
from ..audit.model.verdicts import OverloadVerdict
from . import audit_tables, compiled_tables, module_tables, run_tables, shipped_tables
from .table import Cell, Table
from .wording import LETTERS, duration_text, key_figures, simulated_note, subtitle, surface_note, title

# Longer tables are cut in a terminal, and the line below says where the rest is.
ROWS = 40
NARROWEST_COLUMN = 18
# Faults that are not in the table of fallbacks.
UNNAMED = (
    OverloadVerdict.CRASH,
    OverloadVerdict.TIMEOUT,
    OverloadVerdict.WRONG,
    OverloadVerdict.DTYPE_GAP,
    OverloadVerdict.REFERENCE_FAILED,
)
WRONG_KERNEL_COLUMNS = ("operator", "dtype", "kernels", "cases", "values", "explained by", "case")
KNOWN_COLUMNS = ("issue", "here", "grade", "class", "report", "case")
HINT = "Run a case again with `mpsmith replay CASE`; `mpsmith report --cases` lists the cases."


def render(summary: AuditSummary, width: int = 120) -> str:
    """The report as text of at most `width` columns, unless operator names are longer."""
    present = summary.overload_counts
    shown = [
        audit_tables.at_fault_table(summary, numbers=True),
        audit_tables.unexplained_table(summary, numbers=True),
        audit_tables.verdict_table(summary),
        _narrow(run_tables.grade_table(summary), ("grade", "overloads", "operators", "cases", "meaning")),
        shipped_tables.shipped_table(summary),
        _narrow(shipped_tables.wrong_kernel_table(summary, numbers=True), WRONG_KERNEL_COLUMNS),
        _narrow(shipped_tables.stand_in_table(summary), ("reason", "overloads", "cases")),
        run_tables.case_table(summary),
        audit_tables.fallback_table(summary),
        compiled_tables.right_when_compiled_table(summary),
        compiled_tables.break_table(summary),
        audit_tables.breakage_table(summary, numbers=True),
        *(audit_tables.fault_table(summary, verdict, numbers=True) for verdict in UNNAMED if verdict in present),
        audit_tables.unattributed_table(summary, faults_only=True),
        audit_tables.disagreement_table(summary),
        _narrow(module_tables.known_report_table(summary, faults_only=True), KNOWN_COLUMNS),
        module_tables.module_table(summary, faults_only=True),
        run_tables.missed_table(summary),
        _narrow(audit_tables.rule_table(summary), ("rule", "cases", "reason")),
    ]
    blocks = [_head(summary, width), *(_table(table, width, ROWS) for table in shown if table.rows), HINT]
    return "\n\n".join(blocks) + "\n"


def render_selection(summary: AuditSummary, width: int = 120) -> str:
    """All overloads of a summary that filters have narrowed, a line each."""
    table = audit_tables.overload_table(summary)
    text = _table(table, width, len(table.rows)) if table.rows else "No overload of this run matches the filters."
    legend = ", ".join(f"{letter} {verdict.value}" for verdict, letter in LETTERS.items())
    parts = [f"{title(summary)}, filtered: {summary.selection}", text, *([legend, HINT] if table.rows else [])]
    return "\n\n".join(parts) + "\n"


def _head(summary: AuditSummary, width: int) -> str:
    lines = [title(summary), subtitle(summary), *_execution(summary), ""]
    notes = [note for note in [simulated_note(summary)] if note]
    notes += [note for note in [surface_note(summary)] if note]
    for sentence in (*notes, *key_figures(summary)):
        lines += textwrap.wrap(sentence, width)
    return "\n".join(lines)


def _execution(summary: AuditSummary) -> list[str]:
    """The time and duration of this run, which no published file shows."""
    execution = summary.execution
    if execution is None:
        return []
    took = f"started {execution.started}, {duration_text(execution.duration)}"
    return [f"run {execution.run}, {took}, {duration_text(execution.case_seconds)} in the cases of all workers"]


def _table(table: Table, width: int, limit: int) -> str:
    rows = table.rows[:limit]
    text = tabulate(_fitted(table, rows, width), headers=table.columns, tablefmt="simple")
    rest = len(table.rows) - len(rows)
    more = f"\n… and {rest:,} more (--format markdown or html shows all)" if rest else ""
    return f"{table.heading}\n\n{text}{more}"


def _narrow(table: Table, columns: tuple[str, ...]) -> Table:
    """The table with only these columns."""
    kept = [table.columns.index(column) for column in columns]
    return replace(table, columns=columns, rows=tuple(tuple(row[i] for i in kept) for row in table.rows))


def _fitted(table: Table, rows: tuple[tuple[Cell, ...], ...], width: int) -> list[list[Cell]]:
    """Shorten texts until the table fits, the widest columns first; names of operators are never shortened.

    tabulate pads headings by two and puts two spaces between columns.
    """
    widths = [max([len(c) + 2, *(len(f"{row[i]}") for row in rows)]) for i, c in enumerate(table.columns)]
    free = [i for i, column in enumerate(table.columns) if column not in ("overload", "operator", "rule")]
    while sum(widths) + 2 * (len(widths) - 1) > width:
        widest = max(free, key=lambda i: widths[i])
        if widths[widest] <= NARROWEST_COLUMN:
            break
        widths[widest] -= 1
    return [[_clipped(cell, widths[i]) for i, cell in enumerate(row)] for row in rows]


def _clipped(cell: Cell, width: int) -> Cell:
    return cell if isinstance(cell, int) or len(cell) <= width else cell[: width - 1] + "…"
