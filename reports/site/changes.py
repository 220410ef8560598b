"""Counts the overloads whose verdict changed between two audits; the page of audits lists them."""

from __future__ import annotations

from collections import Counter

from ...audit.findings.overload_verdict import SEVERITY
from ...audit.findings.results import AuditSummary
from ...audit.model.verdicts import OverloadVerdict
from ..counting import counted

SUPPORT = (OverloadVerdict.NATIVE, OverloadVerdict.COMPOSITE)
_ORDER = ("worse", "other", "better", "new", "not there now")


def changes(before: AuditSummary, after: AuditSummary) -> Counter[str]:
    """How many overloads changed, by kind."""
    earlier = {o.name: o.verdict for o in before.overloads}
    kinds: Counter[str] = Counter()
    for o in after.overloads:
        was = earlier.pop(o.name, OverloadVerdict.UNREACHABLE if o.executed == 0 else None)  # not executed: not new
        if was is not o.verdict:
            kinds[_kind(was, o.verdict)] += 1
    kinds["not there now"] += sum(was is not OverloadVerdict.UNREACHABLE for was in earlier.values())
    return kinds


def in_a_sentence(kinds: Counter[str]) -> str:
    """The numbers of changed overloads, in one sentence."""
    if not kinds.total():
        return "No overload has another verdict than in the last run."
    parts = [f"{kinds[kind]:,} {kind}" for kind in _ORDER if kinds[kind]]
    return f"{counted(kinds.total(), 'overload')} changed since the last run: {', '.join(parts)}."


def _kind(was: OverloadVerdict | None, now: OverloadVerdict) -> str:
    if was is None:
        return "new"
    if OverloadVerdict.UNREACHABLE in (was, now):
        return "other"  # executed in only one of the two
    if (was in SUPPORT) == (now in SUPPORT) and was in SUPPORT:
        return "other"
    return "worse" if SEVERITY.index(now) < SEVERITY.index(was) else "better"
