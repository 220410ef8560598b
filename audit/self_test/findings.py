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
RESULTS = ("found", "misattributed", "missed")

CaseName = tuple[GroupKey, int]


@dataclass(frozen=True)
class FaultFinding:
    """What the audit said of one fault.

    Attributes:
        planted: the fault.
        result: "found" (its overload is blamed), "misattributed" (it is not, though cases failed), or "missed".
        cases: how many cases that no rule explains did not pass because of it.
        blamed: the overloads that the report says are at fault for them, the one of most cases first.
        shown_by: the first of the cases in one line.
        audited: the entries that were audited for it.
    """

    planted: PlantedFault
    result: str
    cases: int
    blamed: Mapping[str, int]
    shown_by: str
    audited: tuple[str, ...]


def finding_of(
    planted: PlantedFault,
    audited: tuple[str, ...],
    failing: Sequence[StoredCase],
    at_fault: Sequence[FaultyOverload],
) -> FaultFinding:
    """What the audit makes of a fault.

    Args:
        planted: the fault.
        audited: the entries that were audited for it.
        failing: their cases that did not pass because of it.
        at_fault: the overloads that the report of the round says are at fault.
    """
    overload = planted.fault.overload
    blamed: Counter[str] = Counter()
    for each in at_fault:
        if failing and (each.overload == overload or any(_is_of(entry, audited) for entry in each.entries)):
            blamed[each.overload] += each.total
    for case in failing:
        blamed.update(case.outcome.fallbacks)
    result = "found" if blamed[overload] else "misattributed" if failing else "missed"
    shown_by = next((line(case) for case in failing), "")
    return FaultFinding(planted, result, len(failing), dict(blamed.most_common()), shown_by, audited)


def _is_of(entry: str, audited: tuple[str, ...]) -> bool:
    """Whether an entry, its variant behind the last dot, is of one of these operators."""
    return any(entry == operator or entry.startswith(f"{operator}.") for operator in audited)


def accusations(
    cases: Iterable[StoredCase], clean: Mapping[CaseName, CaseVerdict], rule_of: Mapping[str, str]
) -> list[StoredCase]:
    """The cases that did not pass, that no rule explains and that ended otherwise without a fault."""
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
    said = outcome.message or ", ".join(outcome.fallbacks)
    return f"{case.label} ({case.inputs}): {outcome.verdict.value}, {said}"
