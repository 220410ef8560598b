"""The tables of the reports as plain data; the renderers only format them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection

from ..audit.findings.explanations import RuleUse
from ..audit.findings.overload_verdict import SEVERITY
from ..audit.findings.results import FAULTS, AuditSummary, FaultyOverload, OverloadSummary, Unattributed
from ..audit.model.selection import DTYPES
from ..audit.model.verdicts import CASE_SEVERITY, CaseVerdict, OverloadVerdict
from .rule_growth import grown_rules
from .table import Cell, Table, shortened
from .wording import LETTERS, MEANING, PARTLY_BROKEN, SHORT_DTYPES, graded, marked

UNEXPLAINED = "UNEXPLAINED"
NEVER_ACQUITS = (
    "A rule explains and never acquits: verdicts are what they are without it. Only where it is not known what a Mac "
    "does, a case counts for no overload."
)
STALE = "STALE: explained nothing in this full run; it may be out of date"


def verdict_table(summary: AuditSummary) -> Table:
    """How many overloads and operators have each verdict."""
    overloads, operators = summary.overload_counts, summary.operator_counts
    rows: list[tuple[Cell, ...]] = [
        (LETTERS[v], v.value, overloads.get(v, 0), operators.get(v, 0), MEANING[v])
        for v in SEVERITY
        if v in overloads or v in operators
    ]
    rows.append(("", "all", len(summary.overloads), len(summary.operators), ""))
    note = (
        "The verdict of most cases that ran on the device; what fewer cases showed is listed under Broken in some "
        "cases. An operator has the worst verdict of its overloads that were executed."
    )
    columns = ("", "verdict", "overloads", "operators", "meaning")
    return Table(marked("Verdicts", summary), columns, tuple(rows), note)


def fallback_table(summary: AuditSummary) -> Table:
    """The operators that the device itself named, with how often."""
    rows = [
        (
            f.overload,
            f.fell_back,
            f.refused,
            f.dispatch.value if f.dispatch else "not in the surface",
            "all" if set(f.dtypes) >= set(summary.dtypes) else ", ".join(f.dtypes),
            shortened(f.entries),
        )
        for f in summary.fallbacks
    ]
    note = (
        "Cases in which the device itself named the operator: as falling back to the CPU, or, in strict mode, as not "
        "implemented. Structured operators are named by their out overload."
    )
    return Table(
        marked("Operators that fell back or are missing", summary),
        ("operator", "fell back", "refused", "surface", "dtypes", "seen in"),
        tuple(rows),
        note,
        frozenset({"operator", "seen in"}),
    )


def fault_table(summary: AuditSummary, verdict: OverloadVerdict, *, numbers: bool = False) -> Table:
    """The overloads of one verdict, with the reason and the case that decided, by number or label."""
    rows = []
    for overload in summary.overloads:
        if overload.verdict is verdict:
            case = number_of(summary, overload.worst_case) if numbers else overload.worst_case or ""
            rule = worst_case_rule(summary, overload)
            grade = graded(overload.grade)
            rows.append((overload.name, dtypes_of(overload, verdict), grade, overload.reason, rule, case))
    rows.sort(key=lambda row: row[4] != UNEXPLAINED)  # unexplained ones first
    return Table(
        marked(verdict.value.capitalize(), summary),
        ("overload", "dtypes", "grade", "evidence", "explained by", "case" if numbers else "worst case"),
        tuple(rows),
        f"{MEANING[verdict][0].upper()}{MEANING[verdict][1:]}.",
        frozenset({"overload", "worst case"}),
    )


def number_of(summary: AuditSummary, label: str | None) -> Cell:
    """The store's number of a case, short enough for a terminal; its label if that is unknown, "" for None."""
    if label is None:
        return ""
    return label if summary.execution is None else summary.execution.numbers.get(label, label)


def worst_case_rule(summary: AuditSummary, overload: OverloadSummary) -> str:
    """The rule that explains the case which decided the overload's verdict; "" if no case did."""
    return "" if overload.worst_case is None else summary.cases[overload.worst_case].rule or UNEXPLAINED


def unexplained_table(summary: AuditSummary, *, numbers: bool = False) -> Table:
    """The cases that did not pass and that no rule explains, the most severe first, by number or label."""
    rows = [
        (u.entry, u.verdict.value, graded(u.grade), u.cases, ", ".join(u.dtypes), u.message, case)
        for u in summary.explanation.unexplained
        for case in [number_of(summary, u.example) if numbers else u.example]
    ]
    return Table(
        marked("Unexplained non-passes", summary),
        ("entry", "verdict", "grade", "cases", "dtypes", "message", "case" if numbers else "first case"),
        tuple(rows),
        "No rule says why these cases did not pass: each is new or not yet examined. `mpsmith report "
        "--unexplained` lists them all.",
        frozenset({"entry", "first case"}),
    )


def at_fault_table(summary: AuditSummary, *, numbers: bool = False) -> Table:
    """The overloads at fault for failed cases that no rule explains, the most serious first."""
    rows = [
        (
            faulty.overload,
            ", ".join(f"{verdict.value} in {count:,}" for verdict, count in faulty.cases.items()),
            ", ".join(faulty.dtypes),
            graded(faulty.grade),
            _evidence(faulty),
            _called_by(faulty),
            number_of(summary, faulty.example) if numbers else faulty.example,
        )
        for faulty in summary.at_fault
    ]
    return Table(
        marked("Overloads at fault", summary),
        ("overload", "cases", "dtypes", "grade", "evidence", "seen in", "case" if numbers else "example"),
        tuple(rows),
        "The calls inside a wrong case were compared with the CPU's one by one. The innermost wrong call is at "
        "fault, not its callers. `mpsmith report --unexplained` lists the cases.",
        frozenset({"overload", "seen in", "example"}),
    )


def _evidence(faulty: FaultyOverload) -> str:
    called = f", called with {faulty.call}" if faulty.call else ""
    others = f"this or one of {', '.join(faulty.or_one_of)}: " if faulty.or_one_of else ""
    return f"{others}{faulty.message}{called}"


def _called_by(faulty: FaultyOverload) -> str:
    entries = shortened(faulty.entries)
    if not faulty.explains:
        return entries
    return f"{entries}; explains {sum(faulty.explains.values()):,} cases of {shortened(tuple(faulty.explains))}"


def rule_table(summary: AuditSummary) -> Table:
    """The rules that explain the other cases that did not pass, with their reasons; then those that explain none."""
    rows: list[tuple[Cell, ...]] = [
        (rule.name, rule.total, _counted(rule), rule.reason, _holds_on(rule), shortened(rule.entries))
        for rule in summary.explanation.rules
    ]
    rows += [(name, 0, "", STALE, "", "") for name in summary.explanation.stale]
    return Table(
        marked("Rules that explain non-passes", summary),
        ("rule", "cases", "verdicts", "reason", "holds on", "seen in"),
        tuple(rows),
        f"{summary.explanation.sentence}. {NEVER_ACQUITS}" + _growth(summary),
        frozenset({"rule", "seen in"}),
    )


def _growth(summary: AuditSummary) -> str:
    """The rules that explain many more cases than in the published audit, in a sentence; "" if there are none."""
    cases = {rule.name: rule.total for rule in summary.explanation.rules}
    grown = grown_rules(cases, summary.run.settings)
    return f" More than a fifth above the published audit: {'; '.join(grown)}." if grown else ""


def _counted(rule: RuleUse) -> str:
    return ", ".join(f"{count:,} {verdict.value}" for verdict, count in rule.cases.items())


def _holds_on(rule: RuleUse) -> str:
    where = {"both": "any mps device", "simulated": "the simulated device", "real": "a Mac"}[rule.holds_on]
    where += ", counts for no overload" if rule.unknown_on_mac else ""
    return f"{where} ({rule.upstream})" if rule.upstream else where


def fault_tables(summary: AuditSummary) -> list[Table]:
    """A table for every fault that occurs, the worst first, and one for failed references."""
    wanted = (*FAULTS, OverloadVerdict.REFERENCE_FAILED)
    present = summary.overload_counts
    return [fault_table(summary, verdict) for verdict in wanted if verdict in present]


def breakage_table(summary: AuditSummary, *, numbers: bool = False) -> Table:
    """Cases that crash, time out or are wrong in overloads whose verdict, that of most cases, is a different one."""
    rows: list[tuple[Cell, ...]] = []
    for o in summary.overloads:
        for breakage in o.breakages:
            case = number_of(summary, breakage.worst_case) if numbers else breakage.worst_case
            share = f"{breakage.verdict.value} in {breakage.cases:,} of {o.executed:,} cases"
            shown = summary.cases[breakage.worst_case]
            dtypes, grade, rule = ", ".join(breakage.dtypes), graded(shown.grade), shown.rule or UNEXPLAINED
            rows.append((o.name, o.verdict.value, share, dtypes, grade, breakage.message, rule, case))
    rows.sort(key=lambda row: row[6] != UNEXPLAINED)
    last = ("evidence", "explained by", "case" if numbers else "worst case")
    columns = ("overload", "verdict", "but", "dtypes", "grade", *last)
    return Table(
        marked("Broken in some cases", summary),
        columns,
        tuple(rows),
        "The verdict is that of most cases; these cases differ from it.",
        frozenset({"overload", "worst case"}),
    )


def _letter(verdict: OverloadVerdict, breakages: Collection[object]) -> str:
    return LETTERS[verdict] + (PARTLY_BROKEN if breakages else "")


def map_table(summary: AuditSummary) -> Table:
    """Operator × dtype, a letter each, of the operators that are not simply supported; "" if nothing ran."""
    rows = [
        (
            o.name,
            *(_letter(o.dtypes[d], o.dtype_breakages.get(d, ())) if d in o.dtypes else "" for d in DTYPES),
            graded(o.grade),
            *([o.compiled.verdict.value if o.compiled else ""] if summary.compiled else []),
        )
        for o in summary.operators
        if o.verdict in FAULTS or o.breakages
    ]
    legend = ", ".join(f"{LETTERS[v]} {v.value}" for v in SEVERITY if v is not OverloadVerdict.UNREACHABLE)
    note = f"Operators with a fault; empty: no case. {legend}; {PARTLY_BROKEN} some cases crash, hang or are wrong."
    return Table(
        marked("Operators by dtype", summary),
        ("operator", *DTYPES, "grade", *(["compiled"] if summary.compiled else [])),
        tuple(rows),
        note,
        frozenset({"operator"}),
    )


def overload_table(summary: AuditSummary) -> Table:
    """Every overload with its verdict, a letter for each dtype, and the number of the case that decided."""
    rows = [
        (
            o.name,
            o.verdict.value,
            *(_letter(o.dtypes[d].verdict, o.dtypes[d].broken_case or ()) if d in o.dtypes else "" for d in DTYPES),
            graded(o.grade),
            o.reason,
            number_of(summary, o.worst_case),
        )
        for o in summary.overloads
    ]
    columns = ("overload", "verdict", *(SHORT_DTYPES.get(d, d) for d in DTYPES), "grade", "evidence", "case")
    return Table(marked("Overloads", summary), columns, tuple(rows), code=frozenset({"overload"}))


def disagreement_table(summary: AuditSummary) -> Table:
    """Overloads that did not behave as the surface says."""
    rows = [
        (d.overload, d.dispatch.value if d.dispatch else "not listed", d.observed, shortened(d.entries))
        for d in summary.disagreements
    ]
    return Table(
        marked("Disagreements", summary),
        ("overload", "the surface says", "the run shows", "seen in"),
        tuple(rows),
        "Here the declarations of the release contradict what was executed.",
        frozenset({"overload", "seen in"}),
    )


def unattributed_table(summary: AuditSummary, *, faults_only: bool = False) -> Table:
    """Findings of entries that could not be attributed to an overload, over all dtypes.

    `faults_only`: without failed references.
    """
    by_finding: defaultdict[tuple[str, CaseVerdict], list[Unattributed]] = defaultdict(list)
    for item in summary.unattributed:
        if item.verdict is not CaseVerdict.REFERENCE_FAILED or not faults_only:
            by_finding[item.entry, item.verdict].append(item)
    rows: list[tuple[Cell, ...]] = []
    for (entry, verdict), items in by_finding.items():
        dtypes = list(dict.fromkeys(item.dtype for item in items))
        rows.append(
            (
                entry,
                verdict.value,
                sum(item.cases for item in items),
                "all" if set(dtypes) >= set(summary.dtypes) else ", ".join(dtypes),
                summary.cases[items[0].worst_case].message,
                shortened(items[0].suspects),
            )
        )
    rows.sort(key=lambda row: CASE_SEVERITY.index(CaseVerdict(row[1])))
    return Table(
        marked("Findings that no overload answers for", summary),
        ("entry", "verdict", "cases", "dtypes", "message", "calls"),
        tuple(rows),
        "Nothing was traced and no overload has this name, or all that was called works in other entries.",
        frozenset({"entry", "calls"}),
    )


def dtypes_of(overload: OverloadSummary, verdict: OverloadVerdict) -> str:
    """The dtypes for which the overload has this verdict; "all" if these are all dtypes with evidence."""
    names = [dtype for dtype, evidence in overload.dtypes.items() if evidence.verdict is verdict]
    return "all" if len(names) == len(overload.dtypes) > 1 else ", ".join(names)
