"""Compares the calls of an operator under torch.compile with its eager calls."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace

from ...compiled.verdicts import CompiledVerdict, worst_compiled
from ...model.selection import dtype_position
from ...model.verdicts import CaseVerdict, OverloadVerdict
from .measurements import compiled_verdicts
from .summary import CompiledFinding, CompiledSummary

# Verdicts of eager calls that right results of generated Metal improve on.
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
class EagerComparison:
    """The calls of an operator under torch.compile.

    Attributes:
        verdict: the worst that its cases showed.
        dtypes: the same for each dtype.
        cures: the dtypes in which generated Metal is right, and eager calls lack a kernel or fail.
        breaks: the dtypes in which eager calls work and compiled calls do not.
    """

    verdict: CompiledVerdict
    dtypes: Mapping[str, CompiledVerdict]
    cures: tuple[str, ...] = ()
    breaks: tuple[str, ...] = ()


@dataclass(frozen=True)
class CompiledLane:
    """The part of a report on eager calls that is about the audit under torch.compile.

    Attributes:
        executed: in how many cases torch.compile was asked.
        dtypes: of these cases.
        operators: how many operators, as the sources name them, have each verdict.
        findings: what is not right, the worst first, without the generated source.
    """

    executed: int
    dtypes: tuple[str, ...]
    operators: Mapping[CompiledVerdict, int]
    findings: tuple[CompiledFinding, ...] = ()


def compiled_lane(
    summary: CompiledSummary | None, operators: Collection[str]
) -> tuple[CompiledLane | None, dict[str, dict[str, CompiledVerdict]]]:
    """The part of a report about an audit under torch.compile, and the compiled verdict of each operator and dtype.

    Args:
        summary: the audit; None if the store has none. Then nothing is known.
        operators: those that may be named ("aten::mode").
    """
    if summary is None:
        return None, {}
    dtypes = {dtype for operator in summary.operators for dtype in operator.dtypes}
    lane = CompiledLane(
        summary.executed,
        tuple(sorted(dtypes, key=dtype_position)),
        dict(summary.operator_counts),
        tuple(replace(finding, source="") for finding in summary.findings),
    )
    verdicts = compiled_verdicts(summary, operators)
    return lane, {
        name: {dtype: of_dtype[dtype] for dtype in sorted(of_dtype, key=dtype_position)}
        for name, of_dtype in verdicts.items()
    }


def compare_with_eager(
    compiled: Mapping[str, CompiledVerdict],
    eager: Mapping[str, OverloadVerdict],
    broken: Mapping[str, Iterable[CaseVerdict]],
) -> EagerComparison | None:
    """Compare the compiled calls of an operator with its eager calls; None if it was not compiled.

    Args:
        compiled: the compiled verdict of each dtype.
        eager: the verdict of the eager calls, by dtype.
        broken: other failures of eager calls, by dtype. A dtype is in `breaks` only where all eager calls work.
    """
    worst = worst_compiled(compiled.values())
    if worst is None:
        return None
    cures = [
        dtype for dtype, verdict in compiled.items() if verdict is CompiledVerdict.METAL and eager.get(dtype) in CURED
    ]
    breaks = [
        dtype
        for dtype, verdict in compiled.items()
        if verdict.is_broken and dtype in eager and eager[dtype].is_support and not tuple(broken.get(dtype, ()))
    ]
    return EagerComparison(worst, compiled, tuple(cures), tuple(breaks))
