"""What an operator's calls give under torch.compile, beside what they give as they are: a cure, or the reverse."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from ...compiled.verdicts import CompiledVerdict, FaultyStage, worst_compiled
from ...model.selection import DTYPES
from ...model.verdicts import CaseVerdict, OverloadVerdict
from ...store.records import Run
from ...store.store import Store
from .measurements import compiled_measurements
from .summary import CompiledFinding, summarize_compiled

# What the calls of a dtype show as they are, where right results of generated Metal are better.
CURED = frozenset(
    {
        OverloadVerdict.FALLBACK,
        OverloadVerdict.MISSING,
        OverloadVerdict.DTYPE_GAP,
        OverloadVerdict.WRONG,
        OverloadVerdict.CRASH,
        OverloadVerdict.TIMEOUT,
    }
)


@dataclass(frozen=True)
class CompiledBeside:
    """What became of an operator's calls under torch.compile.

    Attributes:
        verdict: the worst that its cases showed.
        dtypes: the same for each dtype.
        cures: the dtypes in which generated Metal is right, and the calls as they are lack a kernel or break.
        breaks: the dtypes in which the calls work as they are, and not when they are compiled.
    """

    verdict: CompiledVerdict
    dtypes: Mapping[str, CompiledVerdict]
    cures: tuple[str, ...] = ()
    breaks: tuple[str, ...] = ()


@dataclass(frozen=True)
class FoundCompiled:
    """Cases of one operator that showed the same under torch.compile, without the generated source.

    Attributes:
        verdict: what they showed.
        operator: as its source calls it.
        dtypes: of the cases.
        reason: why, of the example.
        example: the label of one of them, which `mpsmith replay` takes.
        cases: how many there are.
        faulty_stage: the compilation stage at fault for a wrong result.
        known_defect: the number of the known defect that it is taken for, or "".
    """

    verdict: CompiledVerdict
    operator: str
    dtypes: tuple[str, ...]
    reason: str
    example: str
    cases: int
    faulty_stage: FaultyStage | None = None
    known_defect: str = ""


@dataclass(frozen=True)
class CompiledLane:
    """The audit under torch.compile that stands beside an audit of calls as they are.

    Attributes:
        executed: in how many cases torch.compile was asked.
        dtypes: of these cases.
        operators: how many operators, as the sources name them, have each verdict.
        findings: what is not right, the worst first.
    """

    executed: int
    dtypes: tuple[str, ...]
    operators: Mapping[CompiledVerdict, int]
    findings: tuple[FoundCompiled, ...] = ()


def compiled_run_beside(store: Store, run: Run) -> Run | None:
    """The newest finished audit under torch.compile of what `run` audited; one with another generator is not that."""
    fitting = [
        each
        for each in store.runs()
        if each.compiled and each.finished is not None and not each.settings.get("codegen") and _same(each, run)
    ]
    return fitting[-1] if fitting else None


def _same(one: Run, other: Run) -> bool:
    return all(one.environment.get(name) == other.environment.get(name) for name in ("torch", "simulated", "profile"))


def compiled_lane(
    store: Store, run: Run, operators: Collection[str]
) -> tuple[CompiledLane | None, dict[str, dict[str, CompiledVerdict]]]:
    """The lane beside a run, and for each of its operators the compiled verdict of each dtype.

    Args:
        run: of calls as they are. Without a compiled run beside it the lane is None, and nothing is known.
        operators: those that may be named ("aten::mode").
    """
    beside = compiled_run_beside(store, run)
    if beside is None:
        return None, {}
    found = summarize_compiled(store, beside)
    dtypes = {dtype for operator in found.operators for dtype in operator.dtypes}
    lane = CompiledLane(
        found.executed,
        tuple(sorted(dtypes, key=_position)),
        dict(found.operator_counts),
        tuple(map(_without_source, found.findings)),
    )
    measured = compiled_measurements(found, operators)
    return lane, {name: _by_dtype(verdicts) for name, verdicts in measured.items()}


def _without_source(finding: CompiledFinding) -> FoundCompiled:
    return FoundCompiled(
        finding.verdict,
        finding.operator,
        finding.dtypes,
        finding.reason,
        finding.example,
        finding.cases,
        finding.faulty_stage,
        finding.known_defect,
    )


def _by_dtype(verdicts: Mapping[str, Iterable[str]]) -> dict[str, CompiledVerdict]:
    named = {dtype: CompiledVerdict(word) for word, dtypes in verdicts.items() for dtype in dtypes}
    return {dtype: named[dtype] for dtype in sorted(named, key=_position)}


def _position(dtype: str) -> int:
    return DTYPES.index(dtype) if dtype in DTYPES else len(DTYPES)


def beside(
    compiled: Mapping[str, CompiledVerdict],
    eager: Mapping[str, OverloadVerdict],
    broken: Mapping[str, Iterable[CaseVerdict]],
) -> CompiledBeside | None:
    """What compiling gives an operator; None where it was not compiled.

    Args:
        compiled: the compiled verdict of each dtype.
        eager: the verdict of its calls as they are, by dtype.
        broken: what some of them showed beside that verdict; a dtype is said to break only where all of them work.
    """
    worst = worst_compiled(compiled.values())
    if worst is None:
        return None
    cures = [dtype for dtype, each in compiled.items() if each is CompiledVerdict.METAL and eager.get(dtype) in CURED]
    breaks = [
        dtype
        for dtype, each in compiled.items()
        if each.is_broken and dtype in eager and eager[dtype].is_support and not tuple(broken.get(dtype, ()))
    ]
    return CompiledBeside(worst, compiled, tuple(cures), tuple(breaks))
