"""Tables and words about the operators of an audit under torch.compile, compared with eager calls."""

from __future__ import annotations

from ..audit.findings.compiled.eager_comparison import EagerComparison
from ..audit.findings.results import AuditSummary, OperatorSummary
from .table import Cell, Table
from .wording import marked

NOTE = (
    "From the newest audit of the store under torch.compile, of the grade generated source: Inductor's Metal for mps "
    "ran. `mpsmith report --compiled` has its cases."
)

FOUND_NOTE = (
    "`mpsmith replay CASE --script` makes a case small, as a program for a Mac with the generated Metal beside it. "
    "What looks like a known defect has its number: `mpsmith compiled defects`."
)


def right_when_compiled_table(summary: AuditSummary) -> Table:
    """Operators whose eager call is missing or broken, and which are right in generated Metal."""
    rows = [
        _row(operator, operator.compiled, operator.compiled.cures)
        for operator in summary.operators
        if operator.compiled and operator.compiled.cures
    ]
    return _table("Compile it: generated Metal is right where the call as it is is not", summary, rows)


def break_table(summary: AuditSummary) -> Table:
    """Operators whose eager call works, but which fail under torch.compile."""
    rows = [
        _row(operator, operator.compiled, operator.compiled.breaks)
        for operator in summary.operators
        if operator.compiled and operator.compiled.breaks
    ]
    return _table("Compiling breaks it: the eager call works", summary, rows)


def found_table(summary: AuditSummary) -> Table:
    """The findings of the audit under torch.compile, the worst first."""
    findings = summary.compiled.findings if summary.compiled else ()
    rows = [
        (
            finding.verdict.value,
            finding.operator,
            ", ".join(finding.dtypes),
            finding.faulty_stage.value if finding.faulty_stage else "",
            finding.known_defect,
            finding.reason,
            finding.example,
            finding.cases,
        )
        for finding in findings
    ]
    columns = ("verdict", "operator", "dtypes", "blame", "looks like", "reason", "case", "cases")
    return Table(
        marked("Found under torch.compile", summary), columns, tuple(rows), FOUND_NOTE, frozenset({"operator", "case"})
    )


def _row(operator: OperatorSummary, compiled: EagerComparison, dtypes: tuple[str, ...]) -> tuple[Cell, ...]:
    eager = ", ".join(dict.fromkeys(operator.dtypes[dtype].value for dtype in dtypes))
    under = ", ".join(dict.fromkeys(compiled.dtypes[dtype].value for dtype in dtypes))
    return (
        operator.name,
        ", ".join(dtypes),
        eager,
        under,
        operator.registered.kernel or "" if operator.registered else "",
    )


def _table(heading: str, summary: AuditSummary, rows: list[tuple[Cell, ...]]) -> Table:
    columns = ("operator", "dtypes", "eager", "compiled", "kernel of ours")
    return Table(marked(heading, summary), columns, tuple(rows), NOTE, frozenset({"operator"}))


def in_one_word(compiled: EagerComparison | None) -> str:
    """The compiled verdict in a cell, with its effect compared with the eager call: "metal: cure"."""
    if compiled is None:
        return ""
    meant = [word for word, dtypes in (("cure", compiled.cures), ("breaks", compiled.breaks)) if dtypes]
    return f"{compiled.verdict.value}: {' and '.join(meant)}" if meant else compiled.verdict.value


def in_a_sentence(compiled: EagerComparison | None) -> str:
    """The verdicts of the operator under torch.compile by dtype; "" if it was not compiled."""
    if compiled is None:
        return ""
    by_verdict: dict[str, list[str]] = {}
    for dtype, verdict in compiled.dtypes.items():
        by_verdict.setdefault(verdict.value, []).append(dtype)
    parts = [f"{verdict} in {', '.join(dtypes)}" for verdict, dtypes in by_verdict.items()]
    cure = f". Compile it: the call as it is lacks or breaks {', '.join(compiled.cures)}" if compiled.cures else ""
    breaks = f". Works until it is compiled: {', '.join(compiled.breaks)}" if compiled.breaks else ""
    return f"under torch.compile: {'; '.join(parts)}{cure}{breaks}"
