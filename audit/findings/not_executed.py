"""The reachable overloads that a run did not execute, each with the tried calls and the reasons."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable

from ..cases.calls.recorded_calls import OverloadCalls, RecordedCalls
from ..model.verdicts import CaseVerdict
from ..store.records import CaseCount, Run
from .evidence import OVERLOADS_BY_NAME
from .results import NotExecuted, OverloadSummary

# With these settings a run leaves overloads out on purpose: a list of them would say nothing.
CHOICES = ("ops", "dtypes")
REASONS_SHOWN = 3


def not_executed(
    run: Run, overloads: Iterable[OverloadSummary], counts: Iterable[CaseCount], memory: RecordedCalls
) -> tuple[NotExecuted, ...]:
    """The overloads without an executed case that no rule excludes, in their order.

    Args:
        run: its settings say whether operators or dtypes were chosen; then the list is empty.
        overloads, counts: what the run showed.
        memory: what is known of calls of each overload.
    """
    if any(run.settings.get(choice) for choice in CHOICES):
        return ()
    skipped = _skips(counts)
    missed = [o for o in overloads if o.executed == 0 and not o.unreachable_rule]
    return tuple(_entry(o, memory.overloads.get(o.name, OverloadCalls()), skipped[o.name]) for o in missed)


def _entry(overload: OverloadSummary, recorded: OverloadCalls, skipped: Counter[str]) -> NotExecuted:
    reasons = [reason for reason, _ in skipped.most_common()] or recorded.errors or [overload.reason]
    return NotExecuted(overload.name, len(recorded.calls), recorded.tried, tuple(reasons[:REASONS_SHOWN]))


def _skips(counts: Iterable[CaseCount]) -> defaultdict[str, Counter[str]]:
    """Why cases that call overloads by name were skipped, by overload."""
    reasons: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for count in counts:
        if count.group.source == OVERLOADS_BY_NAME and count.verdict is CaseVerdict.SKIPPED:
            reasons[f"aten::{count.group.operator}"][count.reason] += count.cases
    return reasons
