"""Counts each case of a run for the overloads that it is evidence about."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from ..model.group import dtype_of_case
from ..model.verdicts import CaseVerdict
from ..releases.surface.overloads import Surface
from ..store.records import StoredCase
from .attribution import Attribution, LocatedFaults, SourceEntry
from .evidence import (
    OVERLOADS_BY_NAME,
    UNNAMED,
    CaseReference,
    DtypeFindings,
    OverloadFindings,
    RunEvidence,
    lacks_kernel,
)
from .run_data import RunData


def evidence_of(
    data: RunData,
    surface: Surface,
    rule_of: Mapping[str, str] = MappingProxyType({}),
    unknown_on_mac: Collection[str] = (),
) -> RunEvidence:
    """Attribute what the cases of a run showed.

    Args:
        data: the run.
        surface: the overloads that exist.
        rule_of: by label, the rule that explains a case. No overload is at fault for such a case.
        unknown_on_mac: the rules whose cases count for no overload.
    """
    evidence = RunEvidence(data.counts, Attribution(surface, data.called_overloads))
    attributing = _Attributing(evidence, surface, rule_of, simulated=data.run.simulated)
    no_evidence = {label for label, rule in rule_of.items() if rule in unknown_on_mac}
    uncounted = (CaseVerdict.PASSED, CaseVerdict.SKIPPED)
    for count in evidence.counts:
        if count.verdict in uncounted:
            findings = evidence.entries[SourceEntry.of(count.group)][count.group.dtype]
            findings.cases[count.verdict] += count.cases - count.with_fallbacks
            findings.refused += count.refused
    for case in data.cases:
        if case.outcome.verdict in uncounted and not case.outcome.fallbacks:
            continue
        evidence.numbers[case.label] = case.id
        evidence.entries[SourceEntry.of(case.group)][dtype_of(case)].add(case.outcome.verdict, case)
        if case.label not in no_evidence:
            attributing.attribute(case)
    attributing.finish()
    return evidence


@dataclass(frozen=True)
class _SimilarCases:
    """The key of cases that seem to have one cause: of one entry and dtype, with equal symptoms.

    `looked_inside`: each inner call of theirs was audited, and none was wrong.
    """

    entry: SourceEntry
    dtype: str
    symptom: tuple[str, str]
    looked_inside: bool


class _Attributing:
    """Fills the evidence: first case by case, then with what only all cases together show."""

    def __init__(self, evidence: RunEvidence, surface: Surface, rule_of: Mapping[str, str], *, simulated: bool) -> None:
        self._evidence = evidence
        self._overloads = evidence.overloads
        self._attribution = evidence.attribution
        self._surface = surface
        self._rule_of = rule_of
        self._simulated = simulated
        self._named: defaultdict[tuple[SourceEntry, str], set[str]] = defaultdict(set)
        self._ambiguous: defaultdict[tuple[SourceEntry, str, bool], DtypeFindings] = defaultdict(DtypeFindings)
        self._unlocated: defaultdict[_SimilarCases, DtypeFindings] = defaultdict(DtypeFindings)
        self._located = LocatedFaults()

    def finish(self) -> None:
        """Attribute the cases that name no operator, and credit passing cases, which clear some suspects."""
        for similar, findings in self._unlocated.items():
            self._attribute_unlocated(similar, findings)
        for entry, by_dtype in self._evidence.entries.items():
            for dtype, findings in by_dtype.items():
                self._credit(entry, dtype, findings)
        for (entry, dtype, explained), findings in self._ambiguous.items():
            self._attribute_ambiguous(entry, dtype, findings, explained=explained)

    # ---- faults

    def attribute(self, case: StoredCase) -> None:
        """Attribute one case to overloads, as far as it is certain."""
        verdict = case.outcome.verdict
        fell_back, refused = _named_operators(case)
        self._attribute_named(case, fell_back, CaseVerdict.FALLBACK)
        self._attribute_named(case, refused, CaseVerdict.MISSING)
        named = (*fell_back, *refused)
        if named and verdict in (CaseVerdict.FALLBACK, CaseVerdict.MISSING):
            self._attribute_to_composition(case, named)
        elif verdict in UNNAMED or (not named and verdict is not CaseVerdict.PASSED):
            self._attribute_unnamed(case)

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
        for overload in self._attribution.fallen_back(entry, dtype, named):
            self._add(overload, verdict, case)
            self._named[entry, dtype].add(overload)

    def _attribute_to_composition(self, case: StoredCase, named: tuple[str, ...]) -> None:
        """Count a fallback for a composite operator whose parts fell back. No fallback report names the composite."""
        in_backward = case.outcome.stage == "backward"
        if not case.group.source.startswith(OVERLOADS_BY_NAME):  # those call the overload itself, whatever its name
            in_backward |= all("backward" in name for name in named)
        entry, dtype = SourceEntry.of(case.group), case.group.dtype
        suspects = self._attribution.suspects(entry, dtype)
        if in_backward or not suspects.certain:
            return
        (overload,) = suspects.overloads
        declared = self._surface.by_name.get(overload)
        if declared and declared.dispatch.is_composite and overload not in self._named[entry, dtype]:
            self._add(overload, CaseVerdict.FALLBACK, case)
            self._overloads[overload].inner_fallbacks.update(dict.fromkeys(named))

    def _attribute_unnamed(self, case: StoredCase) -> None:
        entry, dtype, verdict = SourceEntry.of(case.group), dtype_of(case), case.outcome.verdict
        symptom = case.outcome.symptom
        findings = DtypeFindings()
        findings.add(verdict, case)
        if verdict not in UNNAMED or case.label in self._rule_of:
            self._attribute_to_suspects(entry, dtype, findings, explained=True)
        elif case.at_fault is None:
            self._unlocated[_SimilarCases(entry, dtype, symptom, case.looked_inside)].add_all(findings)
        else:
            self._located.add(entry, dtype, symptom, case.at_fault.overload)
            self._attribute_to(case.at_fault.overload, entry, dtype, findings)

    def _attribute_unlocated(self, similar: _SimilarCases, findings: DtypeFindings) -> None:
        """Attribute cases in which no inner call was found wrong, by what other cases showed.

        Cases with the same symptom have the same cause. Otherwise, an overload that these cases called, and that is at
        fault in other cases of the dtype, is the cause: if it is a suspect, the cases count for it; if not, it explains
        them, and they count for no overload.
        """
        entry, dtype = similar.entry, similar.dtype
        overload = self._located.overload_for(entry, dtype, similar.symptom, looked_inside=similar.looked_inside)
        if overload is not None:
            self._attribute_to(overload, entry, dtype, findings)
            return
        called = self._attribution.called(entry, dtype)
        faulty = called & self._located.at_fault(dtype)
        if not faulty and not similar.looked_inside:
            faulty = called & self._located.at_fault_anywhere()
        suspects = self._attribution.suspects(entry, dtype)
        both = sorted(faulty.intersection(suspects.overloads))
        by_itself = suspects.certain and suspects.namesakes and self._has_kernel(suspects.overloads[0])
        if self._simulated and similar.looked_inside and by_itself:
            # Each inner call was compared and right, and a kernel of the simulated device calls nothing else.
            self._attribute_to(suspects.overloads[0], entry, dtype, findings)
        elif len(both) == 1:
            self._attribute_to(both[0], entry, dtype, findings)
        elif faulty and not both:
            for overload in sorted(faulty):
                self._overloads[overload].explains[entry.name] += sum(findings.cases.values())
        else:
            self._attribute_to_suspects(entry, dtype, findings, explained=False)

    def _attribute_to_suspects(
        self, entry: SourceEntry, dtype: str, findings: DtypeFindings, *, explained: bool
    ) -> None:
        suspects = self._attribution.suspects(entry, dtype).overloads
        if len(suspects) == 1:
            self._attribute_to(suspects[0], entry, dtype, findings, explained=explained)
        elif suspects:
            self._ambiguous[entry, dtype, explained].add_all(findings)
        else:
            self._leave_unattributed(entry, dtype, findings)

    def _attribute_to(
        self, overload: str, entry: SourceEntry, dtype: str, findings: DtypeFindings, *, explained: bool = False
    ) -> None:
        self._count(overload, entry, dtype, findings, explained=explained)
        self._overloads[overload].at_fault |= any(verdict in UNNAMED for verdict in findings.cases)

    def _attribute_ambiguous(self, entry: SourceEntry, dtype: str, findings: DtypeFindings, *, explained: bool) -> None:
        """Attribute findings to those of several suspects that no passing case clears.

        Passing cases of other entries clear an overload that is at fault in no certain finding. When they clear all,
        all overloads of the entry's own operator count; other overloads do not, because each is known to work.
        """
        suspects = self._attribution.suspects(entry, dtype)
        remaining = [o for o in suspects.overloads if not self._cleared(self._overloads[o], entry)]
        if not remaining and suspects.namesakes:
            remaining = list(suspects.overloads)
        for overload in remaining:
            self._count(overload, entry, dtype, findings, explained=explained)
            others = (other for other in suspects.overloads if other != overload)
            self._overloads[overload].shared.update(dict.fromkeys(others))
        if not remaining:
            self._leave_unattributed(entry, dtype, findings)

    def _count(
        self, overload: str, entry: SourceEntry, dtype: str, findings: DtypeFindings, *, explained: bool
    ) -> None:
        counted = self._overloads[overload]
        counted.dtypes[dtype].add_all(findings)
        counted.add_entry(entry, overload)
        if not explained:
            counted.add_faults(entry, dtype, findings)

    def _leave_unattributed(self, entry: SourceEntry, dtype: str, findings: DtypeFindings) -> None:
        for verdict, cases in findings.cases.items():
            of_verdict = DtypeFindings(Counter({verdict: cases}), {verdict: findings.worst[verdict]})
            self._evidence.unattributed[entry, dtype, verdict].add_all(of_verdict)

    @staticmethod
    def _cleared(findings: OverloadFindings, entry: SourceEntry) -> bool:
        return not findings.at_fault and bool(findings.passed_in - {entry.name})

    def _add(self, overload: str, verdict: CaseVerdict, case: StoredCase) -> None:
        findings = self._overloads[overload]
        findings.dtypes[case.group.dtype].add(verdict, case)
        findings.add_entry(SourceEntry.of(case.group), overload)

    # ---- credit

    def _credit(self, entry: SourceEntry, dtype: str, shown: DtypeFindings) -> None:
        """Credit the overloads that the entry called with the cases that passed.

        Calls that the CPU refuses, as the device does, show no right result: their reference failed. So `frac`, which
        takes no integers on the CPU either, is not right in int64.

        In a case that fell back, inner calls may have run on the CPU, inside the fallback. Only an operator with a
        kernel that the user's code called is known to have run on the device.
        """
        named: Collection[str] = self._named.get((entry, dtype), ())
        cases = shown.cases
        passed, fell_back = cases.get(CaseVerdict.PASSED, 0) - shown.refused, cases.get(CaseVerdict.FALLBACK, 0)
        others = [verdict for verdict in cases if verdict is not CaseVerdict.SKIPPED]
        for overload, outermost in self._attribution.called_overloads(entry, dtype).items():
            findings = self._overloads[overload]
            findings.add_entry(entry, overload)
            findings.outermost |= outermost
            if overload in named:
                continue
            if self._simulated and not outermost and self._lacks_kernel(overload):
                findings.inside_simulation = True
                continue
            credited = passed + fell_back if outermost and self._has_kernel(overload) else passed
            if shown.refused and outermost:
                findings.dtypes[dtype].cases[CaseVerdict.REFERENCE_FAILED] += shown.refused
            if credited:
                findings.dtypes[dtype].cases[CaseVerdict.PASSED] += credited
                findings.passed_in.add(entry.name)
            else:
                findings.other_verdicts.update(others)

    def _has_kernel(self, overload: str) -> bool:
        declared = self._surface.by_name.get(overload)
        return declared is not None and declared.dispatch.has_kernel

    def _lacks_kernel(self, overload: str) -> bool:
        declared = self._surface.by_name.get(overload)
        return declared is not None and lacks_kernel(declared)


def dtype_of(case: StoredCase) -> str:
    """The dtype that a case counts for: its group's, or that of its tensors if the device refuses the dtype."""
    is_gap = case.outcome.verdict is CaseVerdict.DTYPE_GAP
    return dtype_of_case(case.group, case.inputs) if is_gap else case.group.dtype


def _named_operators(case: StoredCase) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The operators that ran on the CPU, and the operator that the device refused, which a missing case names last."""
    names = case.outcome.fallbacks
    return (names[:-1], names[-1:]) if case.outcome.verdict is CaseVerdict.MISSING else (names, ())
