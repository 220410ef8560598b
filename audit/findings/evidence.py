"""What the executed cases of a run say of each overload, before it is put into one verdict.

Memory depends on the number of overloads, not of cases: cases that passed are only counted, and of the others the
worst of each verdict is kept.
"""

from __future__ import annotations

import math
import shlex
from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from ..model.group import GroupKey
from ..model.verdicts import CASE_SEVERITY, AtFault, CaseVerdict, Grade
from ..releases.surface.overloads import Overload, Surface
from ..store.records import CaseCount, StoredCase
from ..store.store import Store
from .attribution import Attribution, Located, SourceEntry, is_named_after

# The case source whose entries are overloads.
OVERLOADS_BY_NAME = "schema"
# Verdicts that name no operator: they are put down to what the entry calls.
UNNAMED = (CaseVerdict.CRASH, CaseVerdict.TIMEOUT, CaseVerdict.WRONG, CaseVerdict.DTYPE_GAP)


@dataclass(frozen=True)
class CaseReference:
    """A recorded case that stands for others: enough to show it and to run it again.

    `label` is its name, the same in every run with these settings. `max_error` is in units of the tolerance; None
    where nothing was measured or the error is not finite. `rule` names the rule that explains why it did not pass; ""
    where none does. `at_fault` is the call inside it that was found wrong; None where none was, or nobody looked.
    `grade`: what ran, and so what the case is evidence of.
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
    """What cases of one dtype showed of one overload: how many of each verdict, and the worst of each."""

    cases: Counter[CaseVerdict] = field(default_factory=Counter)
    worst: dict[CaseVerdict, CaseReference] = field(default_factory=dict)

    def add(self, verdict: CaseVerdict, case: StoredCase) -> None:
        """Count a case, and keep it if it is worse than the one kept."""
        self.cases[verdict] += 1
        kept = self.worst.get(verdict)
        if kept is None or _weight(case.at_fault, case.outcome.max_error) > _weight(kept.at_fault, kept.max_error):
            self.worst[verdict] = CaseReference.of(case)

    def add_all(self, others: DtypeFindings) -> None:
        """Count the cases of other findings too, and keep the worse of both."""
        self.cases.update(others.cases)
        for verdict, case in others.worst.items():
            kept = self.worst.get(verdict)
            if kept is None or _weight(case.at_fault, case.max_error) > _weight(kept.at_fault, kept.max_error):
                self.worst[verdict] = case


@dataclass
class OverloadFindings:
    """Everything that the run showed of one overload.

    Attributes:
        dtypes: the findings by dtype, empty ones made on first use.
        entries: entries that called it or whose findings it answers for.
        through: operators inside it that fell back or are missing, when it is composed of them.
        shared: the other suspects, where a finding could not be pinned on one overload.
        beside: verdicts of cases in which it was called but which say nothing of it.
        inside_simulation: it was seen inside kernels of the simulated device, which run on the CPU.
        passed_in: the entries whose passing cases count for it.
        at_fault: a finding was put down to it with certainty.
        faults: by dtype, the cases that broke and that no rule explains, which it answers for.
        fault_entries: the entries of those cases.
        explains: by entry, how many cases broke because it is at fault inside them, as is known from others.
        outermost: the user's own code called it in some case.
        asked_for: some entry is one of its own operator; else it was only called by others.
    """

    dtypes: defaultdict[str, DtypeFindings] = field(default_factory=lambda: defaultdict(DtypeFindings))
    entries: set[str] = field(default_factory=set)
    through: dict[str, None] = field(default_factory=dict)
    shared: dict[str, None] = field(default_factory=dict)
    beside: set[CaseVerdict] = field(default_factory=set)
    inside_simulation: bool = False
    passed_in: set[str] = field(default_factory=set)
    at_fault: bool = False
    faults: defaultdict[str, DtypeFindings] = field(default_factory=lambda: defaultdict(DtypeFindings))
    fault_entries: set[str] = field(default_factory=set)
    explains: Counter[str] = field(default_factory=Counter)
    outermost: bool = False
    asked_for: bool = False

    def add_faults(self, entry: SourceEntry, dtype: str, found: DtypeFindings) -> None:
        """Count cases of an entry that broke, which no rule explains."""
        self.faults[dtype].add_all(found)
        self.fault_entries.add(entry.name)

    def add_entry(self, entry: SourceEntry, overload: str) -> None:
        """Note an entry that called the overload, or whose findings it answers for."""
        self.entries.add(entry.name)
        self.asked_for |= is_named_after(entry.operator, overload)


@dataclass
class FallbackFindings:
    """What was reported under one operator's name: cases that fell back, cases that were refused in strict mode."""

    fell_back: int = 0
    refused: int = 0
    dtypes: set[str] = field(default_factory=set)
    entries: set[str] = field(default_factory=set)
    example: CaseReference | None = None


@dataclass
class RunEvidence:
    """What the cases of a run showed.

    Attributes:
        counts: how many cases of each group ended how.
        attribution: which overloads answer for what the entries showed.
        called_overloads: for each group the overloads that it called, True for those that the user's own code called.
        overloads, fallbacks: by overload, and by the operator that a report names.
        entries: by entry of a source, then by dtype.
        unattributed: what no overload answers for.
        numbers: the store's, by label, of the cases that did not simply pass.
    """

    counts: list[CaseCount]
    attribution: Attribution
    called_overloads: Mapping[GroupKey, Mapping[str, bool]]
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
        found: Counter[str] = Counter()
        for count in self.counts:
            if count.verdict is CaseVerdict.SKIPPED:
                found[count.reason] += count.cases
        return found

    @staticmethod
    def _totals(counts: Iterator[tuple[str, CaseCount]]) -> dict[str, Counter[CaseVerdict]]:
        found: dict[str, Counter[CaseVerdict]] = {}
        for name, count in counts:
            found.setdefault(name, Counter())[count.verdict] += count.cases
        return found


def evidence_of(
    store: Store, run: int, surface: Surface, rule_of: Mapping[str, str] = MappingProxyType({}), *, simulated: bool
) -> RunEvidence:
    """Read the cases of a run once and attribute what they showed.

    Args:
        store, run: the cases.
        surface: the overloads that exist.
        rule_of: by label, the rule that explains a case: it is then no overload's fault.
        simulated: the device was the simulated one, whose native kernels call CPU operators inside.
    """
    called_overloads = store.called_overloads(run)
    evidence = RunEvidence(list(store.case_counts(run)), Attribution(surface, called_overloads), called_overloads)
    attributing = _Attributing(evidence, surface, rule_of, simulated=simulated)
    for count in evidence.counts:
        if count.verdict in (CaseVerdict.PASSED, CaseVerdict.SKIPPED):
            findings = evidence.entries[SourceEntry.of(count.group)][count.group.dtype]
            findings.cases[count.verdict] += count.cases - count.with_fallbacks
    for case in store.cases(run, "c.verdict NOT IN ('passed', 'skipped') OR c.fallbacks != '[]'"):
        evidence.numbers[case.label] = case.id
        evidence.entries[SourceEntry.of(case.group)][case.group.dtype].add(case.outcome.verdict, case)
        attributing.attribute(case)
    attributing.finish()
    return evidence


@dataclass(frozen=True)
class _Kind:
    """Cases that have one cause, as far as they can tell: of one entry and dtype, saying the same but for numbers.

    `looked_inside`: each call in them was audited, and none was wrong.
    """

    entry: SourceEntry
    dtype: str
    says: tuple[str, str]
    looked_inside: bool


class _Attributing:
    """Fills the evidence: faults case by case, then what only all of them together can tell."""

    def __init__(self, evidence: RunEvidence, surface: Surface, rule_of: Mapping[str, str], *, simulated: bool) -> None:
        self._evidence = evidence
        self._surface = surface
        self._rule_of = rule_of
        self._simulated = simulated
        self._named: defaultdict[tuple[SourceEntry, str], set[str]] = defaultdict(set)
        self._ambiguous: defaultdict[tuple[SourceEntry, str, bool], DtypeFindings] = defaultdict(DtypeFindings)
        self._unlocated: defaultdict[_Kind, DtypeFindings] = defaultdict(DtypeFindings)
        self._located = Located()

    def finish(self) -> None:
        """Put down what named no operator, and credit overloads with what passed, which clears some suspects."""
        for kind, findings in self._unlocated.items():
            self._attribute_unlocated(kind, findings)
        for entry, by_dtype in self._evidence.entries.items():
            for dtype, findings in by_dtype.items():
                self._credit(entry, dtype, findings.cases)
        for (entry, dtype, explained), findings in self._ambiguous.items():
            self._attribute_ambiguous(entry, dtype, findings, explained=explained)

    # ---- faults

    def attribute(self, case: StoredCase) -> None:
        """Put down what one case showed to overloads, as far as it is certain."""
        verdict, entry, dtype = case.outcome.verdict, SourceEntry.of(case.group), case.group.dtype
        fell_back, refused = _named_operators(case)
        self._attribute_named(case, fell_back, CaseVerdict.FALLBACK)
        self._attribute_named(case, refused, CaseVerdict.MISSING)
        named = (*fell_back, *refused)
        if named and verdict in (CaseVerdict.FALLBACK, CaseVerdict.MISSING):
            self._attribute_to_composition(case, named)
        elif verdict in UNNAMED or (not named and verdict is not CaseVerdict.PASSED):
            self._attribute_to_suspects(case, entry, dtype)

    def _attribute_named(self, case: StoredCase, named: tuple[str, ...], verdict: CaseVerdict) -> None:
        entry, dtype = SourceEntry.of(case.group), case.group.dtype
        for name in named:
            reported = self._evidence.fallbacks[name]
            if verdict is CaseVerdict.FALLBACK:
                reported.fell_back += 1
            else:
                reported.refused += 1
            reported.dtypes.add(dtype)
            reported.entries.add(entry.name)
            reported.example = reported.example or CaseReference.of(case)
        for overload in self._evidence.attribution.fallen_back(entry, dtype, named):
            self._add(overload, verdict, case)
            self._named[entry, dtype].add(overload)

    def _attribute_to_composition(self, case: StoredCase, named: tuple[str, ...]) -> None:
        """A composite operator whose parts fell back did not run on the device, though no report names it."""
        in_backward = case.outcome.stage == "backward"
        if not case.group.source.startswith(OVERLOADS_BY_NAME):  # those call the overload itself, whatever it is named
            in_backward |= all("backward" in name for name in named)
        entry, dtype = SourceEntry.of(case.group), case.group.dtype
        suspects = self._evidence.attribution.suspects(entry, dtype)
        if in_backward or not suspects.certain:
            return
        (overload,) = suspects.overloads
        listed = self._surface.by_name.get(overload)
        if listed and listed.dispatch.is_composite and overload not in self._named[entry, dtype]:
            self._add(overload, CaseVerdict.FALLBACK, case)
            self._evidence.overloads[overload].through.update(dict.fromkeys(named))

    def _attribute_to_suspects(self, case: StoredCase, entry: SourceEntry, dtype: str) -> None:
        verdict, says = case.outcome.verdict, case.outcome.symptom
        if verdict not in UNNAMED or case.label in self._rule_of:
            found = DtypeFindings()
            found.add(verdict, case)
            self._put_down_to_suspects(entry, dtype, found, explained=True)
        elif case.at_fault is None:
            self._unlocated[_Kind(entry, dtype, says, case.looked_inside)].add(verdict, case)
        else:
            self._located.add(entry, dtype, says, case.at_fault.overload)
            found = DtypeFindings()
            found.add(verdict, case)
            self._blame(case.at_fault.overload, entry, dtype, found)

    def _attribute_unlocated(self, kind: _Kind, found: DtypeFindings) -> None:
        """Put down cases in which no call was found wrong, by what is known of the others.

        They have the cause of those that say the same. Failing that, an overload that they called and that is known
        to be at fault with this dtype answers: as a suspect, or as what explains them, and no caller of it does.
        """
        entry, dtype = kind.entry, kind.dtype
        overload = self._located.like(entry, dtype, kind.says, looked_inside=kind.looked_inside)
        if overload is not None:
            self._blame(overload, entry, dtype, found)
            return
        attribution = self._evidence.attribution
        called = attribution.called(entry, dtype)
        known = called & self._located.at_fault(dtype)
        if not known and not kind.looked_inside:
            known = called & self._located.at_fault_anywhere()
        answering = attribution.suspects(entry, dtype)
        suspects = answering.overloads
        both = sorted(known.intersection(suspects))
        by_itself = answering.certain and answering.namesakes and self._has_kernel(suspects[0])
        if self._simulated and kind.looked_inside and by_itself:
            # Each call beside its own was compared and right, and a kernel calls nothing else on the simulated device.
            self._blame(suspects[0], entry, dtype, found)
        elif len(both) == 1:
            self._blame(both[0], entry, dtype, found)
        elif known and not both:
            for overload in sorted(known):
                self._evidence.overloads[overload].explains[entry.name] += sum(found.cases.values())
        else:
            self._put_down_to_suspects(entry, dtype, found, explained=False)

    def _put_down_to_suspects(self, entry: SourceEntry, dtype: str, found: DtypeFindings, *, explained: bool) -> None:
        suspects = self._evidence.attribution.suspects(entry, dtype).overloads
        if len(suspects) == 1:
            self._blame(suspects[0], entry, dtype, found, explained=explained)
        elif suspects:
            self._ambiguous[entry, dtype, explained].add_all(found)
        else:
            for verdict, cases in found.cases.items():
                left = self._evidence.unattributed[entry, dtype, verdict]
                left.add_all(DtypeFindings(Counter({verdict: cases}), {verdict: found.worst[verdict]}))

    def _blame(
        self, overload: str, entry: SourceEntry, dtype: str, found: DtypeFindings, *, explained: bool = False
    ) -> None:
        findings = self._evidence.overloads[overload]
        findings.dtypes[dtype].add_all(found)
        findings.add_entry(entry, overload)
        findings.at_fault |= any(verdict in UNNAMED for verdict in found.cases)
        if not explained:
            findings.add_faults(entry, dtype, found)

    def _attribute_ambiguous(self, entry: SourceEntry, dtype: str, found: DtypeFindings, *, explained: bool) -> None:
        """Put findings down to those of several suspects that nothing clears.

        Passing cases of other entries clear an overload that is at fault in no certain finding. When that clears all,
        overloads of the entry's own operator answer together; of others nobody does: each is known to work.
        """
        suspects = self._evidence.attribution.suspects(entry, dtype)
        left = [o for o in suspects.overloads if not self._cleared(self._evidence.overloads[o], entry)]
        if not left and suspects.namesakes:
            left = list(suspects.overloads)
        for overload in left:
            findings = self._evidence.overloads[overload]
            findings.dtypes[dtype].add_all(found)
            findings.add_entry(entry, overload)
            findings.shared.update(dict.fromkeys(other for other in suspects.overloads if other != overload))
            if not explained:
                findings.add_faults(entry, dtype, found)
        if not left:
            for verdict, cases in found.cases.items():
                self._evidence.unattributed[entry, dtype, verdict].add_all(
                    DtypeFindings(Counter({verdict: cases}), {verdict: found.worst[verdict]})
                )

    @staticmethod
    def _cleared(findings: OverloadFindings, entry: SourceEntry) -> bool:
        return not findings.at_fault and bool(findings.passed_in - {entry.name})

    def _add(self, overload: str, verdict: CaseVerdict, case: StoredCase) -> None:
        findings = self._evidence.overloads[overload]
        findings.dtypes[case.group.dtype].add(verdict, case)
        findings.add_entry(SourceEntry.of(case.group), overload)

    # ---- credit

    def _credit(self, entry: SourceEntry, dtype: str, cases: Mapping[CaseVerdict, int]) -> None:
        """Credit the overloads that the entry called with the cases that passed.

        What a case that fell back called further inside may have run on the CPU, within the fallback; only an
        operator with a kernel of its own that the user's code called is known to have run on the device.
        """
        named: Collection[str] = self._named.get((entry, dtype), ())
        passed, fell_back = cases.get(CaseVerdict.PASSED, 0), cases.get(CaseVerdict.FALLBACK, 0)
        others = [verdict for verdict in cases if verdict is not CaseVerdict.SKIPPED]
        name = entry.name
        for overload, outermost in self._evidence.attribution.called_overloads(entry, dtype).items():
            findings = self._evidence.overloads[overload]
            findings.add_entry(entry, overload)
            findings.outermost |= outermost
            if overload in named:
                continue
            if self._simulated and not outermost and self._lacks_kernel(overload):
                findings.inside_simulation = True
                continue
            credited = passed + fell_back if outermost and self._has_kernel(overload) else passed
            if credited:
                findings.dtypes[dtype].cases[CaseVerdict.PASSED] += credited
                findings.passed_in.add(name)
            else:
                findings.beside.update(others)

    def _has_kernel(self, overload: str) -> bool:
        listed = self._surface.by_name.get(overload)
        return listed is not None and listed.dispatch.has_kernel

    def _lacks_kernel(self, overload: str) -> bool:
        listed = self._surface.by_name.get(overload)
        return listed is not None and lacks_kernel(listed)


def lacks_kernel(overload: Overload) -> bool:
    """Whether the surface has no kernel of any layout for the overload on mps, and it is not composite either."""
    has_one = overload.dispatch.has_kernel or overload.sparse or overload.sparse_compressed
    return not has_one and not overload.dispatch.is_composite


def in_order_of_severity(cases: Mapping[CaseVerdict, int]) -> dict[CaseVerdict, int]:
    """The counts that are not zero, the most severe verdict first."""
    return {verdict: cases[verdict] for verdict in CASE_SEVERITY if cases.get(verdict)}


def _named_operators(case: StoredCase) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The operators that ran on the CPU, and the one that the device refused: the last named by a missing case."""
    names = case.outcome.fallbacks
    return (names[:-1], names[-1:]) if case.outcome.verdict is CaseVerdict.MISSING else (names, ())


def _weight(at_fault: AtFault | None, max_error: float | None) -> tuple[bool, float]:
    """How well a case shows what is wrong: one in which the call at fault was found above all.

    Nothing measured means that the device raised or the shape differs: worse than any number.
    """
    return at_fault is not None, math.inf if max_error is None else max_error
