"""Compares two audits, overload by overload."""

from __future__ import annotations

from ...audit.findings.overload_verdict import SEVERITY
from ...audit.findings.results import AuditSummary
from ...audit.model.verdicts import OverloadVerdict
from ..table import Cell, Table
from ..wording import counted, marked

SUPPORT = (OverloadVerdict.NATIVE, OverloadVerdict.COMPOSITE)


def change_table(before: AuditSummary, after: AuditSummary) -> Table:
    """The overloads whose verdict changed, those that got worse first."""
    earlier = {o.name: o.verdict for o in before.overloads}
    rows: list[tuple[Cell, ...]] = []
    for o in after.overloads:
        was = earlier.pop(o.name, OverloadVerdict.UNREACHABLE if o.executed == 0 else None)  # counts as absent
        if was is not o.verdict:
            rows.append((o.name, _kind(was, o.verdict), was.value if was else "", o.verdict.value, o.reason))
    gone = {name: was for name, was in earlier.items() if was is not OverloadVerdict.UNREACHABLE}
    rows += [(name, "not there now", was.value, "", "") for name, was in gone.items()]
    order = ("worse", "other", "better", "new", "not there now")
    rows.sort(key=lambda row: (order.index(str(row[1])), str(row[0])))
    return Table(
        marked("Changed since the last run", after),
        ("overload", "change", "before", "now", "evidence now"),
        tuple(rows),
        f"Compared with the run of torch {before.run.environment.get('torch', 'unknown')} before this one.",
        frozenset({"overload"}),
    )


def in_a_sentence(changes: Table) -> str:
    """The numbers of changed overloads, in one sentence."""
    if not changes.rows:
        return "No overload has another verdict than in the last run."
    kinds = [str(row[1]) for row in changes.rows]
    parts = [f"{kinds.count(kind):,} {kind}" for kind in dict.fromkeys(kinds)]
    return f"{counted(len(kinds), 'overload')} changed since the last run: {', '.join(parts)}."


def _kind(was: OverloadVerdict | None, now: OverloadVerdict) -> str:
    if was is None:
        return "new"
    if OverloadVerdict.UNREACHABLE in (was, now):
        return "other"  # executed in only one of the two
    if (was in SUPPORT) == (now in SUPPORT) and was in SUPPORT:
        return "other"
    return "worse" if SEVERITY.index(now) < SEVERITY.index(was) else "better"
