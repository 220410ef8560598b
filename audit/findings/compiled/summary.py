"""Summarizes a run under torch.compile: a verdict for each operator and dtype, and the findings."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from ...compiled.verdicts import SEVERITY, CompiledVerdict, FaultyStage, worst_compiled
from ...model.group import DYNAMIC
from ...store.records import Run, StoredCompiledCase
from ...store.store import Store
from ..rules.generated_metal import known_defect

# Verdicts that say nothing about generated Metal: shown in the table, not in the list of findings.
NO_FINDING = frozenset(
    {
        CompiledVerdict.METAL,
        CompiledVerdict.METAL_AND_ATEN,
        CompiledVerdict.ATEN,
        CompiledVerdict.NO_KERNEL,
        CompiledVerdict.CANNOT_TRACE,
        CompiledVerdict.MISSING,
        CompiledVerdict.DTYPE_GAP,
        CompiledVerdict.REFERENCE_FAILED,
        CompiledVerdict.SKIPPED,
    }
)

# An error in units of the tolerance below which a result is wrong in its last digits only.
LAST_DIGITS = 100.0
# Names that are paths: of torch's modules, and of what whole programs do.
_PATHS = (
    *("nn.", "linalg.", "fft.", "special.", "sparse.", "masked.", "signal.", "torch.", "ops."),
    *("networks.", "optim.", "control."),
)


@dataclass(frozen=True)
class CompiledFinding:
    """Cases of one operator that showed the same.

    Attributes:
        operator: as its source calls it.
        verdict: what the cases showed.
        faulty_stage: the compilation stage at fault for a wrong result.
        reason: why, of the first case.
        line: the refused line of the generated source.
        example: the label of the first case; `mpsmith replay` runs it again.
        inputs: its inputs.
        dtypes: the dtypes of the cases.
        cases: how many there are.
        dynamic_only: whether it shows only where sizes are symbols.
        source: the generated Metal of the example.
        error: the largest error of the cases in units of the tolerance; None if none beyond it was measured.
        known_defect: the number of the known defect that it is taken for, or "".
    """

    operator: str
    verdict: CompiledVerdict
    faulty_stage: FaultyStage | None
    reason: str
    line: str
    example: str
    inputs: str
    dtypes: tuple[str, ...]
    cases: int
    dynamic_only: bool
    source: str = ""
    error: float | None = None
    known_defect: str = ""


@dataclass(frozen=True)
class CompiledOperator:
    """One operator under torch.compile.

    Attributes:
        name: as its source calls it.
        verdict: the worst that its executed cases showed.
        dtypes: the same for each dtype.
        aten: the operators of aten that stayed calls in some case.
        on_cpu: of these, what ran on the CPU because mps has no kernel for it.
        cases: how many were executed.
        breaks: how many graph breaks there were.
        recompilations: how many recompilations.
        untraced: why Dynamo made no graph of some case.
    """

    name: str
    verdict: CompiledVerdict
    dtypes: dict[str, CompiledVerdict]
    aten: tuple[str, ...]
    on_cpu: tuple[str, ...]
    cases: int
    breaks: int
    recompilations: int
    untraced: tuple[str, ...]


@dataclass(frozen=True)
class CompiledSummary:
    """A run under torch.compile.

    Attributes:
        run: the run.
        operators: every operator that was executed, in order of names.
        findings: what was found, the worst first.
        counts: the executed cases by verdict.
        operator_counts: the operators by their verdict.
    """

    run: Run
    operators: tuple[CompiledOperator, ...]
    findings: tuple[CompiledFinding, ...]
    counts: Counter[CompiledVerdict] = field(default_factory=Counter)

    @property
    def executed(self) -> int:
        """In how many cases torch.compile was asked."""
        return sum(number for verdict, number in self.counts.items() if verdict.executed)

    @property
    def operator_counts(self) -> Counter[CompiledVerdict]:
        """How many operators have each verdict."""
        return Counter(operator.verdict for operator in self.operators)

    @property
    def breaks(self) -> int:
        """All graph breaks."""
        return sum(operator.breaks for operator in self.operators)

    @property
    def recompilations(self) -> int:
        """All recompilations."""
        return sum(operator.recompilations for operator in self.operators)


def summarize_compiled(store: Store, run: Run) -> CompiledSummary:
    """The summary of a run under torch.compile."""
    by_operator: dict[str, list[StoredCompiledCase]] = {}
    counts: Counter[CompiledVerdict] = Counter()
    for case in store.compiled_cases(run.id):
        counts[case.compiled.verdict] += 1
        if case.compiled.verdict.executed:
            by_operator.setdefault(operator_of(case.group.operator), []).append(case)
    operators = tuple(_operator(name, cases) for name, cases in sorted(by_operator.items()))
    findings = [finding for name, cases in by_operator.items() for finding in _findings(name, cases)]
    findings.sort(key=_worst_first)
    return CompiledSummary(run, operators, tuple(findings), counts)


def matching_compiled_run(store: Store, run: Run) -> Run | None:
    """The newest finished audit under torch.compile of what `run` audited."""
    same = ("torch", "simulated", "profile")
    runs = [
        compiled
        for compiled in store.runs()
        if compiled.compiled
        and compiled.finished is not None
        and all(compiled.environment.get(name) == run.environment.get(name) for name in same)
    ]
    return runs[-1] if runs else None


def operator_of(group: str) -> str:
    """The operator that a group is about, however its source writes it: overloads of one are together.

    "add.Tensor" and "add_" of the schemas are "add"; "nn.functional.gelu" and "linalg.svd" keep OpInfo's names.
    """
    if group.startswith(_PATHS):
        return group
    name, _, _ = group.partition(".")
    return name if name.endswith("__") else name.removesuffix("_")


def aten_names(name: str) -> tuple[str, ...]:
    """Possible names in aten of a summary's operator, the likeliest first; OpInfo's names are paths in torch."""
    last = name.rpartition(".")[2]
    return tuple(f"aten::{spelling}" for spelling in dict.fromkeys((name, name.replace(".", "_"), last, f"{last}_")))


def _operator(name: str, cases: list[StoredCompiledCase]) -> CompiledOperator:
    by_dtype: dict[str, set[CompiledVerdict]] = {}
    for case in cases:
        by_dtype.setdefault(case.group.dtype, set()).add(case.compiled.verdict)
    worst = worst_compiled(case.compiled.verdict for case in cases)
    assert worst is not None
    untraced = {c.compiled.reason for c in cases if c.compiled.verdict is CompiledVerdict.CANNOT_TRACE}
    return CompiledOperator(
        name,
        worst,
        {dtype: verdict for dtype, verdicts in by_dtype.items() if (verdict := worst_compiled(verdicts))},
        tuple(sorted({overload for case in cases for overload in case.compiled.aten})),
        tuple(sorted({overload for case in cases for overload in case.compiled.outcome.fallbacks})),
        len(cases),
        sum(len(case.compiled.breaks) for case in cases),
        sum(case.compiled.recompilations for case in cases),
        tuple(sorted(untraced)),
    )


def _findings(name: str, cases: Iterable[StoredCompiledCase]) -> list[CompiledFinding]:
    alike: dict[tuple[object, ...], list[StoredCompiledCase]] = {}
    for case in cases:
        if case.compiled.verdict not in NO_FINDING:
            alike.setdefault(_defect_key(case), []).append(case)
    return [_finding(name, alike_cases) for alike_cases in alike.values()]


def _defect_key(case: StoredCompiledCase) -> tuple[object, ...]:
    """A key that is equal for cases of an operator that show the same defect; it ignores numbers and positions."""
    outcome = case.compiled
    if outcome.verdict is CompiledVerdict.WRONG:
        return outcome.verdict, outcome.faulty_stage, outcome.reason.partition(":")[0], case.group.variant
    return outcome.verdict, re.sub(r"\d+", "0", outcome.reason.partition(": data race")[0][:80])


def _worst_first(finding: CompiledFinding) -> tuple[object, ...]:
    """Sorts by verdict, then unknown defects first, then errors beyond the last digits first."""
    last_digits = finding.error is not None and finding.error < LAST_DIGITS
    has_known_defect = bool(finding.known_defect)
    return SEVERITY.index(finding.verdict), has_known_defect, last_digits, finding.operator, finding.example


def _finding(name: str, cases: list[StoredCompiledCase]) -> CompiledFinding:
    first = min(cases, key=lambda case: (case.group.mode == DYNAMIC, len(case.inputs)))
    dtypes = tuple(dict.fromkeys(case.group.dtype for case in cases))
    outcome = first.compiled
    return CompiledFinding(
        name,
        outcome.verdict,
        outcome.faulty_stage,
        outcome.reason,
        outcome.line,
        first.label,
        first.inputs,
        dtypes,
        len(cases),
        all(case.group.mode == DYNAMIC for case in cases),
        outcome.source,
        _beyond_tolerance(cases),
        known_defect(outcome.verdict, outcome.faulty_stage, name, dtypes, outcome.reason, outcome.source),
    )


def _beyond_tolerance(cases: Iterable[StoredCompiledCase]) -> float | None:
    """The largest error of what is wrong in its values; a NaN has no size."""
    outcomes = [case.compiled.outcome for case in cases if case.compiled.verdict is CompiledVerdict.WRONG]
    errors = [outcome.max_error for outcome in outcomes if outcome.max_error is not None and outcome.max_error > 1]
    return max(errors, default=None)
