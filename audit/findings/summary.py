"""From one run to one verdict an overload, and the roll-ups that reports show.

Everything is computed from what was executed. An overload that no case called is `unreachable`, with the reason,
whatever the surface says. `overload_verdict` decides between findings; a fallback never counts as support.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache

from ...registry import known_wrong
from ..cases.calls.recorded_calls import RecordedCalls
from ..model.verdicts import CaseVerdict
from ..releases.surface.overloads import Surface
from ..store.records import Run
from ..store.store import Store
from .attribution import SourceEntry
from .case_attribution import evidence_of
from .compiled.eager_comparison import compiled_lane
from .evidence import CaseReference, RunEvidence, in_order_of_severity
from .explanations import Explanation, explain
from .faulty_overloads import at_fault
from .grading import Grading
from .known_reports import ReportResult, known_reports
from .not_executed import not_executed
from .overload_summaries import in_dtype_order, overload_summaries
from .pairs_seen import pairs_seen
from .results import AuditSummary, OverloadSummary, RegistryStatus, RunVerdicts
from .rollups import disagreements, entry_summaries, fallback_summaries, operator_summaries, unattributed_findings
from .run_data import RunData, read_run
from .run_facts import RunFacts, run_execution, run_facts
from .shipped.launches import GroupLaunches, shipped_evidence
from .shipped.wrong_kernels import wrong_kernels
from .without_effect import without_effect


def summarize(
    store: Store, run: Run, surface: Surface, registered: Mapping[str, RegistryStatus] | None = None
) -> AuditSummary:
    """Summarize one run of a store.

    Args:
        store, run: what was executed.
        surface: the overloads of the audited torch.
        registered: the registry's status of each operator ("aten::mode"), shown beside the verdicts.
    """
    return summarize_judged(store, judged_run(read_run(store, run), surface), registered)


def summarize_judged(
    store: Store, judged: JudgedRun, registered: Mapping[str, RegistryStatus] | None = None
) -> AuditSummary:
    """As `summarize`, of a run that was read in full and judged already."""
    data, surface = judged.data, judged.surface
    run, evidence, overloads = data.run, judged.evidence, judged.overloads
    cases = _referenced_cases(evidence, judged.rule_of)
    lane, compiled = compiled_lane(data.compiled, {overload.operator for overload in overloads})
    return AuditSummary(
        run=judged.facts,
        execution=run_execution(data, {label: evidence.numbers[label] for label in cases}),
        surface_release=surface.release,
        surface_source=_portable(surface.source),
        totals=_totals(evidence),
        dtype_totals={dtype: in_order_of_severity(cases) for dtype, cases in in_dtype_order(evidence.by_dtype())},
        skips=dict(sorted(evidence.skips().items())),
        overloads=overloads,
        operators=operator_summaries(overloads, registered or {}, compiled),
        entries=entry_summaries(evidence, data.groups, pairs_seen(store.covered(run.id)), judged.grading),
        fallbacks=fallback_summaries(evidence, surface),
        disagreements=tuple(disagreements(evidence, surface, overloads)),
        unattributed=unattributed_findings(evidence),
        cases=cases,
        explanation=judged.explanation,
        at_fault=at_fault(evidence),
        not_executed=not_executed(run, overloads, data.counts, _committed_memory()),
        module=tuple(data.module_rows),
        known_reports=_known_reports(evidence, judged.grading),
        shipped=shipped_evidence(data, surface, judged.launches),
        wrong_kernels=wrong_kernels(data.cases, judged.rule_of),
        compiled=lane,
        without_effect=without_effect(data),
    )


def verdicts(store: Store, run: Run, surface: Surface) -> RunVerdicts:
    """Only the verdicts of a run, as `summarize` computes them, in half of the time: to compare runs."""
    return judged_run(read_run(store, run, only_verdicts=True), surface).verdicts()


@dataclass(frozen=True)
class JudgedRun:
    """The evidence of a run, and the verdicts that follow from it."""

    data: RunData
    surface: Surface
    explanation: Explanation
    rule_of: Mapping[str, str]
    evidence: RunEvidence
    launches: GroupLaunches
    grading: Grading
    facts: RunFacts
    overloads: tuple[OverloadSummary, ...]

    def verdicts(self) -> RunVerdicts:
        """Only the verdicts of a run, without evidence."""
        operators = operator_summaries(self.overloads, {}, {})
        return RunVerdicts(self.facts, _totals(self.evidence), self.overloads, operators)


def judged_run(data: RunData, surface: Surface) -> JudgedRun:
    """Judge a run: what each overload's cases say of it."""
    explanation, rule_of = explain(data, surface)
    evidence = evidence_of(data, surface, rule_of, explanation.unknown_on_mac)
    launches = GroupLaunches(data.launches)
    grading = Grading(data, launches, surface)
    overloads = tuple(
        replace(overload, shipped=launches.of(overload.name))
        for overload in overload_summaries(evidence, surface, grading, _case_selection(data))
    )
    facts = run_facts(data, grading)
    return JudgedRun(data, surface, explanation, rule_of, evidence, launches, grading, facts, overloads)


def _totals(evidence: RunEvidence) -> dict[str, dict[CaseVerdict, int]]:
    return {mode: in_order_of_severity(cases) for mode, cases in sorted(evidence.by_mode().items())}


@cache
def _committed_memory() -> RecordedCalls:
    """The committed recorded calls. They are large, so they are read once; do not change them."""
    return RecordedCalls.load()


def _portable(source: str) -> str:
    """The origin of the surface without the folder of this machine's packages."""
    before, package, rest = source.partition("torchgen")
    return package + rest if before.endswith(("/", "\\")) else source


def _case_selection(data: RunData) -> str:
    """How the cases were selected, for the reason of an overload that no case calls."""
    settings = data.run.settings
    filters = [f"samples {settings['samples']}"] if settings.get("samples") else []
    filters += [f"{name} {', '.join(settings[name])}" for name in ("ops", "dtypes") if settings.get(name)]
    executed = sum(count.cases for count in data.counts if count.verdict.executed)
    return f"{executed} cases, selected by: {'; '.join(filters) or 'no filter'}"


def _referenced_cases(evidence: RunEvidence, rule_of: Mapping[str, str]) -> dict[str, CaseReference]:
    stored = [f for findings in evidence.overloads.values() for f in findings.dtypes.values()]
    stored += [f for findings in evidence.overloads.values() for f in findings.faults.values()]
    stored += [f for by_dtype in evidence.entries.values() for f in by_dtype.values()]
    stored += evidence.unattributed.values()
    cases = [case for findings in stored for case in findings.worst.values()]
    cases += [reported.example for reported in evidence.fallbacks.values() if reported.example]
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
