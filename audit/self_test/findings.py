"""The result of an audit for each injected fault: found, misattributed, or missed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from ..findings.results import FaultyOverload
from ..model.group import GroupKey
from ..model.verdicts import CaseVerdict
from ..store.records import StoredCase
from .planted import PlantedFault

# Verdicts that are not evidence against the device.
SILENT = (CaseVerdict.PASSED, CaseVerdict.SKIPPED, CaseVerdict.REFERENCE_FAILED)

CaseName = tuple[GroupKey, int]


@dataclass(frozen=True)
class FaultFinding:
    """The result of the audit for one fault.

    Attributes:
        planted: the fault.
        result: "found" (its overload is at fault), "misattributed" (cases failed, but it is not), or "missed".
        cases: the number of unexplained non-passes that it caused.
        blamed: the overloads at fault according to the report, with their numbers of cases, the largest first.
        shown_by: the first of these cases in one line.
        audited: the entries that were audited for it.
    """

    planted: PlantedFault
    result: str
    cases: int
    blamed: Mapping[str, int]
    shown_by: str
    audited: tuple[str, ...]


def finding_of(
    planted: PlantedFault, audited: tuple[str, ...], failing: Sequence[StoredCase], at_fault: Sequence[FaultyOverload]
) -> FaultFinding:
    """The finding for a fault.

    Args:
        planted: the fault.
        audited: the entries that were audited for it.
        failing: the non-passes that it caused.
        at_fault: the overloads at fault by the report of the round.
    """
    overload = planted.fault.overload
    blamed: Counter[str] = Counter()
    for faulty in at_fault:
        if failing and (faulty.overload == overload or any(_is_of(entry, audited) for entry in faulty.entries)):
            blamed[faulty.overload] += faulty.total
    for case in failing:
        blamed.update(case.outcome.fallbacks)
    result = "found" if blamed[overload] else "misattributed" if failing else "missed"
    shown_by = next((line(case) for case in failing), "")
    return FaultFinding(planted, result, len(failing), dict(blamed.most_common()), shown_by, audited)


def _is_of(entry: str, audited: tuple[str, ...]) -> bool:
    """Whether an entry, perhaps with a variant after the last dot, belongs to one of these operators."""
    return any(entry == operator or entry.startswith(f"{operator}.") for operator in audited)


def new_failures(
    cases: Iterable[StoredCase], clean: Mapping[CaseName, CaseVerdict], rule_of: Mapping[str, str]
) -> list[StoredCase]:
    """The unexplained non-passes that have a different verdict without a fault."""
    return [
        case
        for case in cases
        if case.outcome.verdict not in SILENT
        and clean.get((case.group, case.position)) is not case.outcome.verdict
        and case.label not in rule_of
    ]


def line(case: StoredCase) -> str:
    """A case in one line."""
    outcome = case.outcome
    reason = outcome.message or ", ".join(outcome.fallbacks)
    return f"{case.label} ({case.inputs}): {outcome.verdict.value}, {reason}"
