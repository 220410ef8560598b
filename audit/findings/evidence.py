"""Evidence of a run's executed cases for each overload: counts by verdict, and the worst case of each verdict."""

from __future__ import annotations

import math
import shlex
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from ..model.verdicts import CASE_SEVERITY, AtFault, CaseVerdict, Grade
from ..releases.surface.overloads import Overload
from ..store.records import CaseCount, StoredCase
from .attribution import Attribution, SourceEntry, is_named_after

# The case source whose entries are overloads.
OVERLOADS_BY_NAME = "schema"
# Verdicts that name no operator: they are attributed to what the entry calls.
UNNAMED = (CaseVerdict.CRASH, CaseVerdict.TIMEOUT, CaseVerdict.WRONG, CaseVerdict.DTYPE_GAP)


@dataclass(frozen=True)
class CaseReference:
    """A recorded case, with enough to show it and to run it again.

    Attributes:
        label: its name, the same in every run with these settings.
        max_error: in units of the tolerance; None if nothing was measured or the error is not finite.
        rule: the rule that explains why it did not pass; "" if none does.
        at_fault: the inner call that was found wrong; None if none was, or inner calls were not audited.
        grade: what ran, and so what the case is evidence of.
    """

    label: str
    mode: str
    verdict: CaseVerdict
    stage: str
    message: str
    inputs: str
    max_error: float | None
    rule: str = ""
    at_fault: AtFault | None = None
    grade: Grade | None = None

    @classmethod
    def of(cls, case: StoredCase) -> CaseReference:
        """The reference to a stored case."""
        o = case.outcome
        error = o.max_error if o.max_error is not None and math.isfinite(o.max_error) else None
        return cls(
            case.label,
            case.group.mode,
            o.verdict,
            o.stage,
            o.message,
            case.inputs,
            error,
            at_fault=case.at_fault,
            grade=case.grade,
        )

    @property
    def replay(self) -> str:
        """The command that runs exactly this case again."""
        return f"mpsmith replay {shlex.quote(self.label)}"


@dataclass
class DtypeFindings:
    """Evidence of one overload and dtype: the number of cases of each verdict, and the worst of each.

    `refused` counts those that passed because the CPU and the device refuse the call. They show no result.
    """

    cases: Counter[CaseVerdict] = field(default_factory=Counter)
    worst: dict[CaseVerdict, CaseReference] = field(default_factory=dict)
    refused: int = 0

    def add(self, verdict: CaseVerdict, case: StoredCase) -> None:
        """Count a case, and keep it if it is worse than the stored one."""
        self.cases[verdict] += 1
        kept = self.worst.get(verdict)
        if kept is None or _weight(case.at_fault, case.outcome.max_error) > _weight(kept.at_fault, kept.max_error):
            self.worst[verdict] = CaseReference.of(case)

    def add_all(self, others: DtypeFindings) -> None:
        """Count the cases of other findings too, and keep the worse of both."""
        self.cases.update(others.cases)
        self.refused += others.refused
        for verdict, case in others.worst.items():
            kept = self.worst.get(verdict)
            if kept is None or _weight(case.at_fault, case.max_error) > _weight(kept.at_fault, kept.max_error):
                self.worst[verdict] = case


@dataclass
class OverloadFindings:
    """Everything that the run showed of one overload.

    Attributes:
        dtypes: the findings by dtype, empty ones made on first use.
        entries: entries that called it, or whose findings count for it.
        inner_fallbacks: operators inside it that fell back or are missing, when it is composed of them.
        shared: the other suspects, where a finding could not be attributed to one overload.
        other_verdicts: verdicts of cases that called it and are not evidence about it.
        inside_simulation: it was called inside kernels of the simulated device, which run on the CPU.
        passed_in: the entries whose passing cases count for it.
        at_fault: a finding was attributed to it with certainty.
        faults: by dtype, the failing cases without a rule that are attributed to it.
        fault_entries: the entries of those cases.
        explains: by entry, how many cases failed because it is at fault inside them, as other cases show.
        outermost: the user's own code called it in some case.
        asked_for: some entry is named after its operator; else only other entries called it.
    """

    dtypes: defaultdict[str, DtypeFindings] = field(default_factory=lambda: defaultdict(DtypeFindings))
    entries: set[str] = field(default_factory=set)
    inner_fallbacks: dict[str, None] = field(default_factory=dict)
    shared: dict[str, None] = field(default_factory=dict)
    other_verdicts: set[CaseVerdict] = field(default_factory=set)
    inside_simulation: bool = False
    passed_in: set[str] = field(default_factory=set)
    at_fault: bool = False
    faults: defaultdict[str, DtypeFindings] = field(default_factory=lambda: defaultdict(DtypeFindings))
    fault_entries: set[str] = field(default_factory=set)
    explains: Counter[str] = field(default_factory=Counter)
    outermost: bool = False
    asked_for: bool = False

    def add_faults(self, entry: SourceEntry, dtype: str, findings: DtypeFindings) -> None:
        """Count failing cases of an entry that no rule explains."""
        self.faults[dtype].add_all(findings)
        self.fault_entries.add(entry.name)

    def add_entry(self, entry: SourceEntry, overload: str) -> None:
        """Add an entry that called the overload, or whose findings count for it."""
        self.entries.add(entry.name)
        self.asked_for |= is_named_after(entry.operator, overload)


@dataclass
class FallbackFindings:
    """How many cases fell back in one operator, and how many were refused in strict mode."""

    fell_back: int = 0
    refused: int = 0
    dtypes: set[str] = field(default_factory=set)
    entries: set[str] = field(default_factory=set)
    example: CaseReference | None = None


@dataclass
class RunEvidence:
    """The evidence of all cases of a run.

    Attributes:
        counts: the cases of each group by verdict.
        attribution: which overloads the findings of an entry count for.
        overloads, fallbacks: by overload, and by the operator that a report names.
        entries: by entry of a source, then by dtype.
        unattributed: findings that count for no overload.
        numbers: the store's number of each non-pass, by label.
    """

    counts: list[CaseCount]
    attribution: Attribution
    overloads: defaultdict[str, OverloadFindings] = field(default_factory=lambda: defaultdict(OverloadFindings))
    fallbacks: defaultdict[str, FallbackFindings] = field(default_factory=lambda: defaultdict(FallbackFindings))
    entries: defaultdict[SourceEntry, defaultdict[str, DtypeFindings]] = field(
        default_factory=lambda: defaultdict(lambda: defaultdict(DtypeFindings))
    )
    unattributed: defaultdict[tuple[SourceEntry, str, CaseVerdict], DtypeFindings] = field(
        default_factory=lambda: defaultdict(DtypeFindings)
    )
    numbers: dict[str, int] = field(default_factory=dict)

    def by_mode(self) -> dict[str, Counter[CaseVerdict]]:
        """How many cases of each verdict there are, by mode."""
        return self._totals((count.group.mode, count) for count in self.counts)

    def by_dtype(self) -> dict[str, Counter[CaseVerdict]]:
        """How many cases of each verdict there are, by dtype."""
        return self._totals((count.group.dtype, count) for count in self.counts)

    def skips(self) -> Counter[str]:
        """How many cases were not executed, by reason."""
        reasons: Counter[str] = Counter()
        for count in self.counts:
            if count.verdict is CaseVerdict.SKIPPED:
                reasons[count.reason] += count.cases
        return reasons

    @staticmethod
    def _totals(counts: Iterator[tuple[str, CaseCount]]) -> dict[str, Counter[CaseVerdict]]:
        totals: dict[str, Counter[CaseVerdict]] = {}
        for name, count in counts:
            totals.setdefault(name, Counter())[count.verdict] += count.cases
        return totals


def lacks_kernel(overload: Overload) -> bool:
    """Whether the overload has no kernel of any layout on mps and is not composite."""
    has_one = overload.dispatch.has_kernel or overload.sparse or overload.sparse_compressed
    return not has_one and not overload.dispatch.is_composite


def in_order_of_severity(cases: Mapping[CaseVerdict, int]) -> dict[CaseVerdict, int]:
    """The counts that are not zero, the most severe verdict first."""
    return {verdict: cases[verdict] for verdict in CASE_SEVERITY if cases.get(verdict)}


def _weight(at_fault: AtFault | None, max_error: float | None) -> tuple[bool, float]:
    """A sort key: how well a case shows what is wrong. A case with a located fault shows it best.

    An error that was not measured counts as infinite: the device raised, or the shape differs.
    """
    return at_fault is not None, math.inf if max_error is None else max_error
