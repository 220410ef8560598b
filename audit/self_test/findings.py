"""What an audit with faults in the device said of each: found, put down to something else, or missed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from ..findings.attribution import SourceEntry
from ..findings.evidence import UNNAMED, RunEvidence
from ..findings.explanations import Explainer
from ..findings.store import StoredCase
from ..group import GroupKey
from ..verdicts import CaseVerdict
from .planted import PlantedFault

# What is no evidence against the device.
SILENT = (CaseVerdict.PASSED, CaseVerdict.SKIPPED, CaseVerdict.REFERENCE_FAILED)
RESULTS = ("found", "misattributed", "missed")

CaseName = tuple[GroupKey, int]


@dataclass(frozen=True)
class FaultFinding:
    """What the audit said of one fault.

    Attributes:
        planted: the fault.
        result: "found" (its overload is blamed), "misattributed" (others alone are), or "missed".
        cases: how many cases that no rule explains did not pass because of it.
        blamed: the overloads that those are put down to, the most often blamed first.
        shown_by: the first case that blames the overload, or else the first of all, in one line.
        audited: the entries that were audited for it.
    """

    planted: PlantedFault
    result: str
    cases: int
    blamed: Mapping[str, int]
    shown_by: str
    audited: tuple[str, ...]


def finding_of(
    planted: PlantedFault, audited: tuple[str, ...], cases: Iterable[StoredCase], evidence: RunEvidence
) -> FaultFinding:
    """What the failing cases of a fault's entries make of it."""
    overload = planted.fault.overload
    blamed: Counter[str] = Counter()
    right, first, count = "", "", 0
    for case in cases:
        count += 1
        suspects = tuple(blamed_by(case, evidence))
        blamed.update(suspects)
        first = first or line(case)
        if overload in suspects:
            right = right or line(case)
    result = "found" if blamed[overload] else "misattributed" if count else "missed"
    return FaultFinding(planted, result, count, dict(blamed.most_common()), right or first, audited)


def blamed_by(case: StoredCase, evidence: RunEvidence) -> Iterator[str]:
    """The overloads that the reports show as the ones that broke in a case."""
    outcome = case.outcome
    yield from outcome.fallbacks
    if outcome.verdict in UNNAMED:
        entry = SourceEntry.of(case.group)
        for overload in evidence.attribution.suspects(entry, case.group.dtype).overloads:
            shown = evidence.overloads.get(overload)
            if shown is not None and shown.dtypes[case.group.dtype].cases.get(outcome.verdict):
                yield overload


def accusations(
    cases: Iterable[StoredCase], clean: Mapping[CaseName, CaseVerdict], explainer: Explainer
) -> list[StoredCase]:
    """The cases that did not pass, that no rule explains and that ended otherwise without a fault."""
    return [
        case
        for case in cases
        if case.outcome.verdict not in SILENT
        and clean.get((case.group, case.position)) is not case.outcome.verdict
        and explainer.rule_for(case) is None
    ]


def line(case: StoredCase) -> str:
    """A case in one line."""
    outcome = case.outcome
    said = outcome.message or ", ".join(outcome.fallbacks)
    return f"{case.label} ({case.inputs}): {outcome.verdict.value}, {said}"
