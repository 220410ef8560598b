"""The tables about a run as plain data: its cases, grades, skips and environment."""

from __future__ import annotations

from collections import Counter

from ..audit.findings.overload_verdict import count_verdicts
from ..audit.findings.results import AuditSummary
from ..audit.model.verdicts import CASE_SEVERITY, OverloadVerdict
from .table import Cell, Table, shortened
from .wording import GRADE_MEANING, completeness, marked, settings_text


def grade_table(summary: AuditSummary) -> Table:
    """How many overloads, operators and cases have evidence of each grade, and the verdicts of the overloads."""
    operators = Counter(operator.grade for operator in summary.operators)
    rows: list[tuple[Cell, ...]] = []
    for grade, overloads in summary.grade_counts.items():
        verdicts = count_verdicts(overload.verdict for overload in summary.overloads if overload.grade is grade)
        shown = ", ".join(f"{number:,} {verdict.value}" for verdict, number in verdicts.items())
        cases = summary.run.grades.get(grade, 0)
        rows.append((grade.value, overloads, operators[grade], cases, shown, GRADE_MEANING[grade]))
    columns = ("grade", "overloads", "operators", "cases", "verdicts of the overloads", "meaning")
    note = "An overload has the grade of its strongest evidence; not each of its cases is of that grade."
    return Table(marked("Grades of evidence", summary), columns, tuple(rows), note)


def case_table(summary: AuditSummary) -> Table:
    """How many cases had each verdict, by mode, and together."""
    modes = list(summary.totals)
    rows: list[tuple[Cell, ...]] = []
    for verdict in CASE_SEVERITY:
        counts = [summary.totals[mode].get(verdict, 0) for mode in modes]
        if any(counts):
            rows.append((verdict.value, *counts, sum(counts)))
    sums = [sum(summary.totals[mode].values()) for mode in modes]
    rows.append(("all", *sums, sum(sums)))
    note = "Cases in which something fell back run again in strict mode, without PYTORCH_ENABLE_MPS_FALLBACK."
    return Table(marked("Cases", summary), ("verdict", *modes, "all"), tuple(rows), note)


def dtype_table(summary: AuditSummary) -> Table:
    """How many cases of each dtype had each verdict."""
    present = [v for v in CASE_SEVERITY if any(v in counts for counts in summary.dtype_totals.values())]
    rows: list[tuple[Cell, ...]] = [
        (dtype, *(counts.get(verdict, 0) for verdict in present), sum(counts.values()))
        for dtype, counts in summary.dtype_totals.items()
    ]
    return Table(marked("Cases by dtype", summary), ("dtype", *(v.value for v in present), "all"), tuple(rows))


def pairs_table(summary: AuditSummary) -> Table:
    """The pairs of levels that no case covers, for each operator with covering arrays."""
    rows: list[tuple[Cell, ...]] = []
    for entry in summary.entries:
        if entry.pairs is not None and "pairs" in entry.sources and entry.pairs.missing:
            missing = [f"{level} with {', '.join(others)}" for level, others in entry.pairs.missing.items()]
            rows.append((entry.name, entry.pairs.seen, entry.pairs.possible, shortened(missing, 2)))
    return Table(
        marked("Pairs that no case was at", summary),
        ("entry", "pairs seen", "possible", "not seen"),
        tuple(rows),
        "Of the levels that the entry's cases were at alone. The JSON report names every pair that was not seen. "
        + _with_arguments(summary),
        frozenset({"entry"}),
    )


def _with_arguments(summary: AuditSummary) -> str:
    """A sentence on how many pairs of an argument's level and a factor's level the cases of all entries cover."""
    counted = [entry.pairs for entry in summary.entries if entry.pairs is not None]
    seen = sum(pairs.with_arguments for pairs in counted)
    possible = sum(pairs.possible_with_arguments for pairs in counted)
    refused = sum(pairs.refused_with_arguments for pairs in counted)
    share = f" ({seen / possible:.1%})" if possible else ""
    apart = f"; at {refused:,} of the others the CPU refused each case" if refused else ""
    return f"Of {possible:,} pairs of a level of an argument with one of these, cases were at {seen:,}{share}{apart}."


def without_effect_table(summary: AuditSummary) -> Table:
    """The inputs on which no result depends in most of an entry's groups of cases."""
    most = [unused for unused in summary.without_effect if 2 * unused.groups > unused.of]
    rows = [(unused.entry, unused.name, f"{unused.groups} of {unused.of}") for unused in most]
    return Table(
        marked("Inputs on which results do not depend", summary),
        ("entry", "input", "groups"),
        tuple(rows),
        "Groups of cases that passed, and gave the same results on the CPU when this input alone had other values: such"
        " a case does not show that a kernel reads it. Of some operators only its shape counts. Listed are inputs"
        f" without effect in most groups of an entry; {len(summary.without_effect) - len(most):,} more are in fewer.",
        frozenset({"entry"}),
    )


def skip_table(summary: AuditSummary) -> Table:
    """Why cases were not executed."""
    rows = sorted(summary.skips.items(), key=lambda item: (-item[1], item[0]))
    return Table(marked("Skipped cases", summary), ("reason", "cases"), tuple(rows))


def not_executed_table(summary: AuditSummary) -> Table:
    """Why overloads have no evidence, counted by reason."""
    reasons: Counter[str] = Counter(o.reason for o in summary.overloads if o.verdict is OverloadVerdict.UNREACHABLE)
    rows = sorted(reasons.items(), key=lambda item: (-item[1], item[0]))
    return Table(marked("Overloads without evidence", summary), ("reason", "overloads"), tuple(rows))


def missed_table(summary: AuditSummary) -> Table:
    """The reachable overloads that were not executed, with the calls that were tried and why none ran."""
    return Table(
        marked("Overloads that were not executed, and why", summary),
        ("overload", "calls known", "calls tried", "skipped because, or the CPU's errors"),
        tuple((n.overload, n.calls, n.tried, "; ".join(n.reasons)) for n in summary.not_executed),
        "Reachable overloads without an executed case. A call is known when the CPU accepts it; where none was found, "
        "calls were tried, and these are the errors. `python -m mpsmith.audit.cases.argument_search --ops OVERLOAD` "
        "tries again.",
        frozenset({"overload"}),
    )


def environment_table(summary: AuditSummary) -> Table:
    """What the results depend on: versions and settings."""
    run = summary.run
    rows: list[tuple[Cell, ...]] = [
        ("device", "mps, SIMULATED" if run.simulated else "mps"),
        ("completeness", completeness(run)),
        ("settings", settings_text(run.settings)),
        ("overloads from", summary.surface_source),
    ]
    for name, value in sorted(run.environment.items()):
        if name == "variables":
            rows.extend((variable, str(setting)) for variable, setting in sorted(value.items()))
        elif name != "simulated" and value is not None:
            rows.append((name, str(value)))
    return Table(marked("Environment", summary), ("", "value"), tuple(rows))
