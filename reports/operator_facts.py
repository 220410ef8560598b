"""Facts about each operator besides its verdict: its releases, upstream reports, the earlier verdict, and advice."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass

from ..audit.findings.known_reports import ReportResult
from ..audit.findings.overload_verdict import SEVERITY
from ..audit.findings.results import AuditSummary, OverloadSummary
from ..audit.model.verdicts import OverloadVerdict
from .operator_advice import OperatorAdvice, advice_for, works_in_part
from .release_history import ReleaseHistory


@dataclass(frozen=True)
class OperatorFacts:
    """Facts about one operator.

    Attributes:
        since: the release since which it works on mps, as in its advice; "" if none is known.
        upstream: numbers of issues in pytorch/pytorch, or addresses.
        before: its verdict in an earlier run; None without one.
        advice: for its users.
        in_part: some of its overloads work on mps, although its verdict, that of the worst one, says otherwise.
    """

    since: str
    upstream: tuple[str, ...]
    before: OverloadVerdict | None
    advice: OperatorAdvice
    in_part: bool = False


def operator_facts(
    summary: AuditSummary, history: ReleaseHistory | None, before: AuditSummary | None = None
) -> dict[str, OperatorFacts]:
    """The facts of every operator, by name."""
    reports: defaultdict[str, list[ReportResult]] = defaultdict(list)
    for report in summary.known_reports:
        for name in dict.fromkeys(overload.split(".")[0] for overload in report.overloads):
            reports[name].append(report)
    earlier = {operator.name: operator.verdict for operator in before.operators} if before else {}
    overloads: defaultdict[str, list[OverloadSummary]] = defaultdict(list)
    for overload in summary.overloads:
        overloads[overload.operator].append(overload)
    reasons = reasons_of(summary)
    facts = {}
    for operator in summary.operators:
        named = [str(report.issue) for report in reports[operator.name]]
        if operator.registered and operator.registered.upstream:
            named.insert(0, operator.registered.upstream.removeprefix("#"))
        advice = advice_for(
            operator,
            reasons.get(operator.name, ""),
            history,
            reports[operator.name],
            overloads[operator.name],
            simulated=summary.run.simulated,
        )
        in_part = works_in_part(operator, overloads[operator.name])
        upstream = tuple(dict.fromkeys(named))
        facts[operator.name] = OperatorFacts(advice.release, upstream, earlier.get(operator.name), advice, in_part)
    return facts


def reasons_of(summary: AuditSummary) -> dict[str, str]:
    """Why an operator has its verdict: the reason of an overload that has the same, else of its worst."""
    verdicts = {operator.name: operator.verdict for operator in summary.operators}
    best: dict[str, tuple[tuple[bool, int], str]] = {}
    for o in summary.overloads:
        rank = (o.verdict is not verdicts.get(o.operator), SEVERITY.index(o.verdict))
        if o.operator not in best or rank < best[o.operator][0]:
            best[o.operator] = (rank, o.reason)
    return {name: reason for name, (_, reason) in best.items()}
