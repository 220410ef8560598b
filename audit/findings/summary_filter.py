"""Selects the part of a summary that matches a user's filters."""

from __future__ import annotations

import fnmatch
from collections.abc import Iterable, Sequence
from dataclasses import replace

from ...errors import MpsmithError, near
from ..model.verdicts import OverloadVerdict
from .results import AuditSummary, OverloadSummary


def select(
    summary: AuditSummary,
    verdicts: Sequence[OverloadVerdict] = (),
    patterns: Sequence[str] = (),
    dtypes: Sequence[str] = (),
) -> AuditSummary:
    """The part of a summary that matches all filters; empty means all. Facts and totals of the run stay whole.

    A verdict filter keeps overloads and operators with that verdict: over all dtypes, or, together with a dtype
    filter, for one of those dtypes. A pattern is a shell pattern of an overload or an operator, with or without
    "aten::"; "linalg.svd" finds `linalg_svd`. If no operator matches, it is one of entries, and means all
    overloads that those call. Raises MpsmithError for a pattern or
    dtype that matches nothing of the run.
    """
    unknown = [dtype for dtype in dtypes if dtype not in summary.dtypes]
    if unknown:
        raise MpsmithError(f"no case has dtype {unknown[0]!r} (this run has {', '.join(summary.dtypes) or 'no cases'})")
    named = {o.name for pattern in patterns for o in _matching(summary.overloads, pattern)}
    chosen = [
        replace(o, dtypes={d: e for d, e in o.dtypes.items() if not dtypes or d in dtypes})
        for o in summary.overloads
        if not patterns or o.name in named
    ]
    overloads = tuple(o for o in chosen if _has_verdict(o, verdicts, dtypes))
    names = {o.operator for o in overloads}
    operators = tuple(
        replace(o, dtypes={d: v for d, v in o.dtypes.items() if not dtypes or d in dtypes})
        for o in summary.operators
        if o.name in names
    )
    kept = {o.name for o in overloads}
    entry_names = {entry for o in overloads for entry in o.entries}
    return replace(
        summary,
        overloads=overloads,
        operators=operators,
        entries=tuple(e for e in summary.entries if e.name in entry_names),
        fallbacks=tuple(f for f in summary.fallbacks if f.overload in kept),
        disagreements=tuple(d for d in summary.disagreements if d.overload in kept),
        at_fault=tuple(f for f in summary.at_fault if f.overload in kept),
        not_executed=tuple(n for n in summary.not_executed if n.overload in kept),
        unattributed=summary.unattributed if not (verdicts or patterns or dtypes) else (),
        module=summary.module if not (verdicts or patterns or dtypes) else (),
        wrong_kernels=tuple(w for w in summary.wrong_kernels if w.overload in kept or w.entry in entry_names),
        known_reports=tuple(r for r in summary.known_reports if not kept.isdisjoint(r.overloads)),
        selection=_selection(verdicts, patterns, dtypes),
    )


def _selection(verdicts: Sequence[OverloadVerdict], patterns: Sequence[str], dtypes: Sequence[str]) -> str:
    filters = {"verdict": [verdict.value for verdict in verdicts], "operators": patterns, "dtype": dtypes}
    return "; ".join(f"{name} {', '.join(values)}" for name, values in filters.items() if values)


def _has_verdict(overload: OverloadSummary, verdicts: Sequence[OverloadVerdict], dtypes: Sequence[str]) -> bool:
    if dtypes:
        present = {evidence.verdict for evidence in overload.dtypes.values()}
        return bool(present) and (not verdicts or not present.isdisjoint(verdicts))
    return not verdicts or overload.verdict in verdicts


def _matching(overloads: Iterable[OverloadSummary], pattern: str) -> list[OverloadSummary]:
    wanted = pattern.removeprefix("aten::")
    names_of = [(o, (o.name.removeprefix("aten::"), o.operator.removeprefix("aten::"))) for o in overloads]
    matching = [o for o, names in names_of if any(fnmatch.fnmatchcase(name, wanted) for name in names)]
    matching = matching or [
        o for o, (_, operator) in names_of if fnmatch.fnmatchcase(operator, wanted.replace(".", "_"))
    ]
    matching = matching or [o for o, _ in names_of if any(fnmatch.fnmatchcase(entry, wanted) for entry in o.entries)]
    if not matching:
        names = {name for o, own in names_of for name in (own[1], *o.entries)}
        hint = near(wanted, names, "`mpsmith coverage --operators` lists all operators")
        raise MpsmithError(f"no operator or entry of this report matches {pattern}{hint}")
    return matching
