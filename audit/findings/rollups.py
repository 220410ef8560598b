"""Roll-ups of a run: by operator, by entry, by the operators that fell back, and findings of no overload."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

from ..compiled.verdicts import CompiledVerdict
from ..model.selection import dtype_position
from ..model.verdicts import CaseVerdict, Grade, OverloadVerdict, strongest, worst
from ..releases.surface.overloads import Dispatch, Surface
from ..releases.surface.rare_overloads import is_rare
from ..store.records import StoredGroup
from .attribution import SourceEntry
from .compiled.eager_comparison import compare_with_eager
from .evidence import DtypeFindings, RunEvidence, in_order_of_severity, lacks_kernel
from .grading import Grading
from .overload_summaries import in_dtype_order
from .overload_verdict import verdict_over, works
from .results import (
    Disagreement,
    EntryDtype,
    EntrySummary,
    FallbackSummary,
    OperatorSummary,
    OverloadSummary,
    PairsSeen,
    RegistryStatus,
    Unattributed,
)


def operator_summaries(
    overloads: Iterable[OverloadSummary],
    registered: Mapping[str, RegistryStatus],
    compiled: Mapping[str, Mapping[str, CompiledVerdict]],
) -> tuple[OperatorSummary, ...]:
    """The operators with their overloads, the registry's status and compiled verdicts, by name."""
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
    main = _main(overloads)
    verdict, breakages = _combined_verdict((o, o.cases) for o in main)
    by_dtype: dict[str, list[tuple[OverloadSummary, Mapping[CaseVerdict, int]]]] = {}
    for overload in main:
        for dtype, evidence in overload.dtypes.items():
            by_dtype.setdefault(dtype, []).append((overload, evidence.cases))
    of_dtypes = {dtype: _combined_verdict(of_dtype) for dtype, of_dtype in in_dtype_order(by_dtype)}
    eager = {dtype: of_dtype for dtype, (of_dtype, _) in of_dtypes.items()}
    dtype_breakages = {dtype: broken for dtype, (_, broken) in of_dtypes.items() if broken}
    deciding = [o.worst_case for o in main if o.verdict is verdict and o.worst_case is not None]
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
        compiled=compare_with_eager(compiled, eager, dtype_breakages),
    )


def _main(overloads: list[OverloadSummary]) -> list[OverloadSummary]:
    """The overloads that decide the verdict: those executed that are not rare and that the CPU has; else all."""
    executed = [o for o in overloads if o.executed and o.dispatch is not Dispatch.MISSING_EVERYWHERE]
    usual = [o for o in executed if not is_rare(o.name.removeprefix("aten::"))]
    return usual or overloads


def _dtype_grades(overloads: Sequence[OverloadSummary], dtypes: Iterable[str]) -> dict[str, Grade]:
    grades = {dtype: strongest(o.dtypes[dtype].grade for o in overloads if dtype in o.dtypes) for dtype in dtypes}
    return {dtype: grade for dtype, grade in grades.items() if grade is not None}


def _combined_verdict(
    evidence: Iterable[tuple[OverloadSummary, Mapping[CaseVerdict, int]]],
) -> tuple[OverloadVerdict, tuple[CaseVerdict, ...]]:
    """The verdict of several overloads together, and the crashes, time-outs and wrong results next to it."""
    return verdict_over((cases, overload.dispatch, works(overload.cases)) for overload, cases in evidence)


def entry_summaries(
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
    dtypes = {dtype: _entry_dtype(of_dtype) for dtype, of_dtype in in_dtype_order(findings)}
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


def fallback_summaries(evidence: RunEvidence, surface: Surface) -> tuple[FallbackSummary, ...]:
    """The operators that the device reported as fallen back or not implemented, by name."""
    return tuple(
        FallbackSummary(
            overload=name,
            dispatch=_dispatch(surface, name),
            fell_back=reported.fell_back,
            refused=reported.refused,
            dtypes=tuple(dtype for dtype, _ in in_dtype_order(dict.fromkeys(reported.dtypes))),
            entries=tuple(sorted(reported.entries)),
            example=reported.example.label if reported.example else None,
        )
        for name, reported in sorted(evidence.fallbacks.items())
    )


def disagreements(
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


def unattributed_findings(evidence: RunEvidence) -> tuple[Unattributed, ...]:
    """The findings that count for no overload, by entry and dtype."""
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
    return entry, dtype_position(dtype), dtype, verdict.value


def _dispatch(surface: Surface, overload: str) -> Dispatch | None:
    declared = surface.by_name.get(overload)
    return declared.dispatch if declared else None
