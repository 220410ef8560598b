"""From the store to one verdict an overload.

Computed from what was executed: an overload that no case touched is `unreachable`, with the reason, whatever the
surface says of it; `overload_verdict` says which finding decides; a fallback never counts as support.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cache
from typing import Any, TypeVar

from ...registry import known_wrong
from ..cases.calls.memory import Memory
from ..compiled.verdicts import CompiledVerdict
from ..model.selection import DTYPES
from ..model.verdicts import CaseVerdict, Grade, OverloadVerdict, strongest, worst
from ..releases.surface.overloads import Dispatch, Overload, Surface
from ..releases.surface.reachability import Unreachable
from ..store.records import CaseCount, Run, StoredGroup
from ..store.store import Store
from .attribution import SourceEntry
from .compiled.beside_eager import beside, compiled_lane
from .evidence import (
    CaseReference,
    DtypeFindings,
    OverloadFindings,
    RunEvidence,
    evidence_of,
    in_order_of_severity,
    lacks_kernel,
)
from .explanations import Explanation, explain
from .faulty_overloads import at_fault, what_was_wrong
from .grading import Grading
from .known_reports import ReportResult, known_reports
from .not_executed import not_executed
from .overload_verdict import breakages_beside, verdict_of, verdict_over, works
from .pairs_seen import pairs_seen
from .results import (
    FAULTS,
    AuditSummary,
    Breakage,
    Disagreement,
    DtypeEvidence,
    EntryDtype,
    EntrySummary,
    FallbackSummary,
    OperatorSummary,
    OverloadSummary,
    PairsSeen,
    RegistryStatus,
    RunExecution,
    RunFacts,
    RunVerdicts,
    Unattributed,
)
from .shipped.launches import GroupLaunches, shipped_evidence
from .shipped.wrong_kernels import wrong_kernels

__all__ = ["AuditSummary", "RunVerdicts", "summarize", "verdicts"]

T = TypeVar("T")

# The case verdict that decides each fault; both vocabularies spell them alike.
FAULT_CASES: dict[OverloadVerdict, CaseVerdict] = {fault: CaseVerdict(fault.value) for fault in FAULTS}


def summarize(
    store: Store, run: Run, surface: Surface, registered: Mapping[str, RegistryStatus] | None = None
) -> AuditSummary:
    """Summarize one run of a store.

    Args:
        store, run: what was executed.
        surface: the overloads of the audited torch.
        registered: what the registry says, by operator ("aten::mode"); shown beside the verdicts, never part of them.
    """
    judged = _judged(store, run, surface)
    evidence, overloads = judged.evidence, judged.overloads
    cases = _referenced_cases(evidence, judged.rule_of)
    lane, compiled = compiled_lane(store, run, {overload.operator for overload in overloads})
    return AuditSummary(
        run=judged.facts,
        execution=_execution(run, evidence, cases),
        surface_release=surface.release,
        surface_source=_portable(surface.source),
        totals=_totals(evidence),
        dtype_totals={dtype: in_order_of_severity(cases) for dtype, cases in _in_dtype_order(evidence.by_dtype())},
        skips=dict(sorted(evidence.skips().items())),
        overloads=overloads,
        operators=_operators(overloads, registered or {}, compiled),
        entries=_entries(evidence, judged.groups, pairs_seen(store.covered(run.id)), judged.grading),
        fallbacks=_fallbacks(evidence, surface),
        disagreements=tuple(_disagreements(evidence, surface, overloads)),
        unattributed=_unattributed(evidence),
        cases=cases,
        explanation=judged.explanation,
        at_fault=at_fault(evidence),
        not_executed=not_executed(run, overloads, evidence.counts, _committed_memory()),
        module=tuple(store.module_rows(run.id)),
        known_reports=_known_reports(evidence, judged.grading),
        shipped=shipped_evidence(store, run, surface, judged.launches),
        wrong_kernels=wrong_kernels(store, run.id, judged.rule_of),
        compiled=lane,
    )


def verdicts(store: Store, run: Run, surface: Surface) -> RunVerdicts:
    """Of one run the verdicts alone, as `summarize` has them, in half of the time: for what compares runs."""
    judged = _judged(store, run, surface)
    operators = _operators(judged.overloads, {}, {})
    return RunVerdicts(judged.facts, _totals(judged.evidence), judged.overloads, operators)


@dataclass(frozen=True)
class _Judged:
    """A run's evidence and the verdicts that follow."""

    explanation: Explanation
    rule_of: Mapping[str, str]
    evidence: RunEvidence
    groups: list[StoredGroup]
    launches: GroupLaunches
    grading: Grading
    facts: RunFacts
    overloads: tuple[OverloadSummary, ...]


def _judged(store: Store, run: Run, surface: Surface) -> _Judged:
    explanation, rule_of = explain(store, run, surface)
    simulated = bool(run.environment.get("simulated", False))
    evidence = evidence_of(store, run.id, surface, rule_of, simulated=simulated)
    groups = store.groups(run.id)
    launches = GroupLaunches(store.launches(run.id))
    upstream = frozenset(run.environment.get("upstream", ()))
    grading = Grading(evidence.counts, run.grade, launches, evidence.called_overloads, surface, upstream)
    facts = _run_facts(run, groups, evidence.counts, store.repeating(run.id), grading)
    overloads = tuple(
        replace(overload, shipped=launches.of(overload.name))
        for overload in _overloads(evidence, surface, grading, _selection(run, evidence.counts))
    )
    return _Judged(explanation, rule_of, evidence, groups, launches, grading, facts, overloads)


def _totals(evidence: RunEvidence) -> dict[str, dict[CaseVerdict, int]]:
    return {mode: in_order_of_severity(cases) for mode, cases in sorted(evidence.by_mode().items())}


@cache
def _committed_memory() -> Memory:
    """Read once: it is large, and nobody changes it here."""
    return Memory.load()


def _run_facts(
    run: Run, groups: list[StoredGroup], counts: list[CaseCount], repeating: int, grading: Grading
) -> RunFacts:
    return RunFacts(
        finished=run.finished is not None,
        simulated=bool(run.environment.get("simulated", False)),
        settings=run.settings,
        environment=_decisive(run.environment),
        groups_planned=len(groups),
        groups_done=sum(group.done for group in groups),
        recorded=sum(count.cases for count in counts),
        executed=sum(count.cases for count in counts if count.verdict.executed),
        gradients=sum(count.gradients for count in counts),
        repeating=repeating,
        grades=grading.cases,
    )


# What the simulated device does not depend on: its kernels are those of torch's CPU, whose choice `cpu` names.
HARDWARE = ("chip", "machine", "os")


def _decisive(environment: Mapping[str, Any]) -> dict[str, Any]:
    """The environment as far as the results depend on it: on a simulated device not on the machine's name or kernel."""
    left_out = HARDWARE if environment.get("simulated") else ()
    return {name: value for name, value in environment.items() if name not in left_out}


def _execution(run: Run, evidence: RunEvidence, cases: Iterable[str]) -> RunExecution:
    duration = None
    if run.finished is not None:
        duration = (datetime.fromisoformat(run.finished) - datetime.fromisoformat(run.started)).total_seconds()
    return RunExecution(
        run=run.id,
        started=run.started,
        duration=duration,
        case_seconds=sum(count.seconds for count in evidence.counts),
        numbers={label: evidence.numbers[label] for label in cases},
    )


def _portable(source: str) -> str:
    """Where the surface comes from, without the folder in which this machine keeps its packages."""
    before, package, rest = source.partition("torchgen")
    return package + rest if before.endswith(("/", "\\")) else source


def _selection(run: Run, counts: list[CaseCount]) -> str:
    """How the cases were filters, for the reason of an overload that none of them calls."""
    settings = run.settings
    filters = [f"samples {settings['samples']}"] if settings.get("samples") else []
    filters += [f"{name} {', '.join(settings[name])}" for name in ("ops", "dtypes") if settings.get(name)]
    executed = sum(count.cases for count in counts if count.verdict.executed)
    return f"{executed} cases, selected by: {'; '.join(filters) or 'no filter'}"


# ---- overloads


def _overloads(
    evidence: RunEvidence, surface: Surface, grading: Grading, selection: str
) -> tuple[OverloadSummary, ...]:
    """Every overload of the surface, in its order, then those that were called but are not in it."""
    others = sorted(name for name in evidence.overloads if name not in surface.by_name)
    named = [*((declared.name, declared) for declared in surface.overloads), *((name, None) for name in others)]
    return tuple(
        _overload(name, declared, evidence.overloads.get(name, OverloadFindings()), grading, selection)
        for name, declared in named
    )


def _overload(
    name: str, declared: Overload | None, findings: OverloadFindings, grading: Grading, selection: str
) -> OverloadSummary:
    dispatch = declared.dispatch if declared else None
    cases: Counter[CaseVerdict] = Counter()
    for of_dtype in findings.dtypes.values():
        cases.update(of_dtype.cases)
    verdict = verdict_of(cases, dispatch, works_somewhere=works(cases))
    deciding = _worst_of(findings.dtypes.values(), _shown_by(verdict))
    breakages = tuple(_breakages(findings, cases, verdict))
    executed = sum(count for case_verdict, count in cases.items() if case_verdict.executed)
    return OverloadSummary(
        name=name,
        operator=declared.operator if declared else name.split(".", 1)[0],
        schema=declared.schema if declared else "",
        dispatch=dispatch,
        autogenerated=declared.autogenerated if declared else False,
        has_autograd_formula=declared.has_autograd_formula if declared else False,
        unreachable_rule=declared.reach.rule if declared and isinstance(declared.reach, Unreachable) else "",
        verdict=verdict,
        reason=_reason(verdict, cases, deciding, findings, declared, selection) + _told(breakages, executed),
        breakages=breakages,
        executed=executed,
        cases=in_order_of_severity(cases),
        dtypes=_dtype_evidence(name, findings, dispatch, grading, works_somewhere=works(cases)),
        worst_case=deciding.label if deciding else None,
        entries=tuple(sorted(findings.entries)),
        through=tuple(sorted(findings.through)),
        shared_with=tuple(sorted(findings.shared)),
        outermost=findings.outermost,
        asked_for=findings.asked_for,
        grade=grading.of_overload(name) if executed else None,
    )


def _dtype_evidence(
    name: str, findings: OverloadFindings, dispatch: Dispatch | None, grading: Grading, *, works_somewhere: bool
) -> dict[str, DtypeEvidence]:
    evidence = {}
    for dtype, of_dtype in _in_dtype_order(findings.dtypes):
        verdict = verdict_of(of_dtype.cases, dispatch, works_somewhere=works_somewhere)
        deciding = _worst_of([of_dtype], _shown_by(verdict))
        broken = _worst_of([of_dtype], breakages_beside(of_dtype.cases, verdict))
        evidence[dtype] = DtypeEvidence(
            verdict,
            in_order_of_severity(of_dtype.cases),
            deciding.label if deciding else None,
            broken.label if broken else None,
            grading.of_overload(name, dtype) if any(case.executed for case in of_dtype.cases) else None,
        )
    return evidence


def _breakages(
    findings: OverloadFindings, cases: Mapping[CaseVerdict, int], verdict: OverloadVerdict
) -> Iterator[Breakage]:
    for broken, number in breakages_beside(cases, verdict).items():
        shown = _worst_of(findings.dtypes.values(), [broken])
        assert shown is not None
        dtypes = tuple(dtype for dtype, of_dtype in _in_dtype_order(findings.dtypes) if of_dtype.cases.get(broken))
        shared = tuple(sorted(findings.shared))
        yield Breakage(broken, number, dtypes, shown.label, _told_of(shown, shared))


def _told_of(case: CaseReference, shared: Sequence[str]) -> str:
    parts = ["in the backward"] if case.stage == "backward" else []
    parts += [f"this or one of {', '.join(shared)}"] if shared else []
    where = f"{', '.join(parts)}: " if parts else ""
    return f"{where}{what_was_wrong(case)}"


def _told(breakages: Iterable[Breakage], executed: int) -> str:
    return "".join(f"; {each.verdict.value} in {each.cases} of {executed} cases, {each.message}" for each in breakages)


def _worst_of(findings: Iterable[DtypeFindings], verdicts: Iterable[CaseVerdict]) -> CaseReference | None:
    """The case that shows the first of these verdicts best, or None where no case had one."""
    for wanted in verdicts:
        kept = [of_dtype.worst[wanted] for of_dtype in findings if wanted in of_dtype.worst]
        if kept:
            return max(kept, key=lambda case: case.max_error if case.max_error is not None else float("inf"))
    return None


def _shown_by(verdict: OverloadVerdict) -> tuple[CaseVerdict, ...]:
    if verdict is OverloadVerdict.MISSING:
        return CaseVerdict.MISSING, CaseVerdict.DTYPE_GAP
    if verdict in FAULT_CASES:
        return (FAULT_CASES[verdict],)
    return (CaseVerdict.REFERENCE_FAILED,) if verdict is OverloadVerdict.REFERENCE_FAILED else ()


def _reason(
    verdict: OverloadVerdict,
    cases: Mapping[CaseVerdict, int],
    deciding: CaseReference | None,
    findings: OverloadFindings,
    declared: Overload | None,
    selection: str,
) -> str:
    if verdict is OverloadVerdict.UNREACHABLE:
        return _reason_for_nothing(findings, declared, selection)
    if verdict.is_support:
        return f"{cases[CaseVerdict.PASSED]} cases passed"
    assert deciding is not None
    decided_by = next(wanted for wanted in _shown_by(verdict) if cases.get(wanted))
    parts = [f"{cases[decided_by]} of {sum(cases.values())} cases"]
    if decided_by is CaseVerdict.MISSING:
        parts.append("refused in strict mode" if deciding.mode == "strict" else "refused")
    if verdict is OverloadVerdict.MISSING and decided_by is CaseVerdict.DTYPE_GAP:
        parts.append("every dtype of this run is refused")
    if deciding.stage == "backward":
        parts.append("in the backward")
    if verdict is OverloadVerdict.FALLBACK and findings.through:
        parts.append(f"through {', '.join(sorted(findings.through))}")
    if findings.shared and decided_by not in (CaseVerdict.FALLBACK, CaseVerdict.MISSING):
        parts.append(f"this or one of {', '.join(sorted(findings.shared))}")
    says_more = decided_by not in (CaseVerdict.FALLBACK, CaseVerdict.MISSING) and deciding.message
    return ", ".join(parts) + (f": {what_was_wrong(deciding)}" if says_more else "")


def _reason_for_nothing(findings: OverloadFindings, declared: Overload | None, selection: str) -> str:
    """Why there is no evidence. What the surface says is not evidence: it is told, and the verdict stays."""
    if findings.inside_simulation:
        return "seen only inside kernels of the simulated device, which run on the CPU"
    if findings.beside:
        beside = ", ".join(sorted(verdict.value for verdict in findings.beside))
        return f"called only inside cases that say nothing of it ({beside})"
    if declared and isinstance(declared.reach, Unreachable):
        return f"{declared.reach.rule}: {declared.reach.reason}"
    if declared and lacks_kernel(declared):
        return f"not executed; the surface says {declared.dispatch.value}"
    return f"no case of this run calls it ({selection})"


# ---- roll-ups


def _operators(
    overloads: Iterable[OverloadSummary],
    registered: Mapping[str, RegistryStatus],
    compiled: Mapping[str, Mapping[str, CompiledVerdict]],
) -> tuple[OperatorSummary, ...]:
    by_operator: dict[str, list[OverloadSummary]] = {}
    for overload in overloads:
        by_operator.setdefault(overload.operator, []).append(overload)
    return tuple(
        _operator(name, by_operator[name], registered.get(name), compiled.get(name, {})) for name in sorted(by_operator)
    )


def _operator(
    name: str,
    overloads: list[OverloadSummary],
    registered: RegistryStatus | None,
    compiled: Mapping[str, CompiledVerdict],
) -> OperatorSummary:
    verdict, breakages = _over((o, o.cases) for o in overloads)
    by_dtype: dict[str, list[tuple[OverloadSummary, Mapping[CaseVerdict, int]]]] = {}
    for overload in overloads:
        for dtype, evidence in overload.dtypes.items():
            by_dtype.setdefault(dtype, []).append((overload, evidence.cases))
    of_dtypes = {dtype: _over(of_dtype) for dtype, of_dtype in _in_dtype_order(by_dtype)}
    eager = {dtype: of_dtype for dtype, (of_dtype, _) in of_dtypes.items()}
    dtype_breakages = {dtype: broken for dtype, (_, broken) in of_dtypes.items() if broken}
    deciding = [o.worst_case for o in overloads if o.verdict is verdict and o.worst_case is not None]
    return OperatorSummary(
        name=name,
        verdict=verdict,
        dtypes=eager,
        overloads=tuple(overload.name for overload in overloads),
        executed=sum(overload.executed for overload in overloads),
        worst_case=deciding[0] if deciding else None,
        breakages=breakages,
        dtype_breakages=dtype_breakages,
        registered=registered,
        grade=strongest(overload.grade for overload in overloads),
        dtype_grades=_dtype_grades(overloads, of_dtypes),
        compiled=beside(compiled, eager, dtype_breakages),
    )


def _dtype_grades(overloads: Sequence[OverloadSummary], dtypes: Iterable[str]) -> dict[str, Grade]:
    grades = {dtype: strongest(o.dtypes[dtype].grade for o in overloads if dtype in o.dtypes) for dtype in dtypes}
    return {dtype: grade for dtype, grade in grades.items() if grade is not None}


def _over(
    evidence: Iterable[tuple[OverloadSummary, Mapping[CaseVerdict, int]]],
) -> tuple[OverloadVerdict, tuple[CaseVerdict, ...]]:
    """`verdict_over` of cases of several overloads."""
    return verdict_over((cases, overload.dispatch, works(overload.cases)) for overload, cases in evidence)


def _entries(
    evidence: RunEvidence, groups: list[StoredGroup], pairs: Mapping[str, PairsSeen], grading: Grading
) -> tuple[EntrySummary, ...]:
    """Every planned entry, those without a recorded case too; entries of one name in several sources together."""
    sources: defaultdict[str, set[str]] = defaultdict(set)
    by_name: defaultdict[str, defaultdict[str, DtypeFindings]] = defaultdict(lambda: defaultdict(DtypeFindings))
    for key in dict.fromkeys(group.key for group in groups):
        entry = SourceEntry.of(key)
        sources[entry.name].add(entry.source)
        by_name[entry.name][key.dtype]  # made empty where no case was recorded
    for entry, by_dtype in evidence.entries.items():
        for dtype, of_dtype in by_dtype.items():
            by_name[entry.name][dtype].add_all(of_dtype)
    return tuple(
        _entry(name, tuple(sorted(sources[name])), by_name[name], pairs.get(name), grading.of_entry(name))
        for name in sorted(by_name)
    )


def _entry(
    name: str,
    sources: tuple[str, ...],
    findings: Mapping[str, DtypeFindings],
    pairs: PairsSeen | None,
    grade: Grade | None,
) -> EntrySummary:
    dtypes = {dtype: _entry_dtype(of_dtype) for dtype, of_dtype in _in_dtype_order(findings)}
    return EntrySummary(
        name=name,
        sources=sources,
        verdict=worst(v.verdict for v in dtypes.values() if v.verdict is not None),
        executed=sum(n for v in dtypes.values() for verdict, n in v.cases.items() if verdict.executed),
        dtypes=dtypes,
        pairs=pairs,
        grade=grade,
    )


def _entry_dtype(findings: DtypeFindings) -> EntryDtype:
    verdict = worst(findings.cases)
    deciding = findings.worst.get(verdict) if verdict else None
    return EntryDtype(verdict, in_order_of_severity(findings.cases), deciding.label if deciding else None)


def _fallbacks(evidence: RunEvidence, surface: Surface) -> tuple[FallbackSummary, ...]:
    return tuple(
        FallbackSummary(
            overload=name,
            dispatch=_dispatch(surface, name),
            fell_back=reported.fell_back,
            refused=reported.refused,
            dtypes=tuple(dtype for dtype, _ in _in_dtype_order(dict.fromkeys(reported.dtypes))),
            entries=tuple(sorted(reported.entries)),
            example=reported.example.label if reported.example else None,
        )
        for name, reported in sorted(evidence.fallbacks.items())
    )


def _disagreements(
    evidence: RunEvidence, surface: Surface, overloads: Iterable[OverloadSummary]
) -> Iterable[Disagreement]:
    """Overloads that fell back although the surface has a kernel for them, or ran although it has none."""
    for name, reported in sorted(evidence.fallbacks.items()):
        declared = surface.by_name.get(name)
        if declared is None or declared.dispatch.has_kernel or declared.dispatch.is_composite:
            observed = f"fell back in {reported.fell_back} cases, refused in {reported.refused}"
            yield Disagreement(name, declared.dispatch if declared else None, observed, tuple(sorted(reported.entries)))
    for overload in overloads:
        declared = surface.by_name.get(overload.name)
        if declared and lacks_kernel(declared) and overload.verdict.is_support:
            observed = f"ran in {overload.cases[CaseVerdict.PASSED]} cases without a fallback"
            yield Disagreement(overload.name, overload.dispatch, observed, overload.entries)


def _unattributed(evidence: RunEvidence) -> tuple[Unattributed, ...]:
    return tuple(
        Unattributed(
            entry.name,
            dtype,
            verdict,
            left.cases[verdict],
            left.worst[verdict].label,
            evidence.attribution.suspects(entry, dtype).overloads,
        )
        for (entry, dtype, verdict), left in sorted(evidence.unattributed.items(), key=lambda item: _order(item[0]))
    )


def _order(key: tuple[SourceEntry, str, CaseVerdict]) -> tuple[SourceEntry, int, str, str]:
    entry, dtype, verdict = key
    return entry, _dtype_position(dtype), dtype, verdict.value


def _referenced_cases(evidence: RunEvidence, rule_of: Mapping[str, str]) -> dict[str, CaseReference]:
    kept = [f for findings in evidence.overloads.values() for f in findings.dtypes.values()]
    kept += [f for findings in evidence.overloads.values() for f in findings.faults.values()]
    kept += [f for by_dtype in evidence.entries.values() for f in by_dtype.values()]
    kept += evidence.unattributed.values()
    cases = [case for each in kept for case in each.worst.values()]
    cases += [each.example for each in evidence.fallbacks.values() if each.example]
    ordered = sorted(cases, key=lambda case: case.label)
    return {case.label: replace(case, rule=rule_of.get(case.label, "")) for case in ordered}


def _known_reports(evidence: RunEvidence, grading: Grading) -> tuple[ReportResult, ...]:
    cases: dict[SourceEntry, Counter[CaseVerdict]] = defaultdict(Counter)
    worst_cases: dict[tuple[SourceEntry, CaseVerdict], str] = {}
    for entry, by_dtype in evidence.entries.items():
        for of_dtype in by_dtype.values():
            cases[entry].update(of_dtype.cases)
            for verdict, case in of_dtype.worst.items():
                worst_cases.setdefault((entry, verdict), case.label)
    return known_reports(known_wrong.load().values(), cases, worst_cases, grading.of_source_entry)


def _dispatch(surface: Surface, overload: str) -> Dispatch | None:
    declared = surface.by_name.get(overload)
    return declared.dispatch if declared else None


def _in_dtype_order(by_dtype: Mapping[str, T]) -> list[tuple[str, T]]:
    """The items in the order of DTYPES; a dtype that mps does not know comes last."""
    return sorted(by_dtype.items(), key=lambda item: (_dtype_position(item[0]), item[0]))


def _dtype_position(dtype: str) -> int:
    return DTYPES.index(dtype) if dtype in DTYPES else len(DTYPES)
