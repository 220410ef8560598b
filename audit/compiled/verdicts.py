"""What became of a call under torch.compile, in words. Imports no torch."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum

from ..model.verdicts import CaseVerdict, Outcome


class CompiledVerdict(str, Enum):
    """What became of one compiled call. Every call ends with exactly one of these."""

    METAL = "metal"
    """Inductor generated Metal for all of it, and the result is right."""
    METAL_AND_ATEN = "metal + aten"
    """A part of it is generated Metal, a part stayed calls of aten; the result is right."""
    ATEN = "aten"
    """All that computes stayed calls of aten; the result is right."""
    NO_KERNEL = "no kernel"
    """Nothing is left to compute: views, and what is known when it is compiled."""
    CANNOT_TRACE = "cannot trace"
    """Dynamo made no graph of it: it ran as eager code, or not at all."""
    NOT_LOWERED = "not lowered"
    """Inductor raised while it generated code."""
    REJECTED = "rejected"
    """The Metal compiler refuses the generated source."""
    WRONG = "wrong"
    """The compiled call returned something else than the CPU."""
    UNDEFINED_LANES = "undefined lanes"
    """Right where lanes without a thread read as 0, wrong or caught where they hold anything else."""
    RACE = "race"
    """Right in the order that was run, and threads read and write the same place with nothing between them."""
    MISSING = "missing"
    """A part stayed a call of aten that mps has no kernel for."""
    DTYPE_GAP = "dtype gap"
    """It asks for a dtype that mps does not have."""
    ERROR = "error"
    """The compiled call raised something else where the CPU returned."""
    TIMEOUT = "timeout"
    CRASH = "crash"
    REFERENCE_FAILED = "reference failed"
    SKIPPED = "skipped"

    @property
    def executed(self) -> bool:
        """Whether torch.compile was asked at all."""
        return self not in (CompiledVerdict.REFERENCE_FAILED, CompiledVerdict.SKIPPED)

    @property
    def is_right(self) -> bool:
        """Whether the compiled call returned what the CPU does, whoever computed it."""
        return self in RIGHT

    @property
    def lowered(self) -> bool:
        """Whether a part of the call at least is generated Metal that is right."""
        return self in (CompiledVerdict.METAL, CompiledVerdict.METAL_AND_ATEN)

    @property
    def is_broken(self) -> bool:
        """Whether a call that works as it is stops working: a graph that Dynamo does not make runs as eager code."""
        return self in BROKEN


BROKEN = frozenset(
    {
        CompiledVerdict.CRASH,
        CompiledVerdict.TIMEOUT,
        CompiledVerdict.WRONG,
        CompiledVerdict.RACE,
        CompiledVerdict.UNDEFINED_LANES,
        CompiledVerdict.REJECTED,
        CompiledVerdict.NOT_LOWERED,
        CompiledVerdict.ERROR,
    }
)
RIGHT = frozenset(
    {CompiledVerdict.METAL, CompiledVerdict.METAL_AND_ATEN, CompiledVerdict.ATEN, CompiledVerdict.NO_KERNEL}
)

# From the worst to the best: of several calls of an operator, the worst is its verdict.
SEVERITY: tuple[CompiledVerdict, ...] = (
    CompiledVerdict.CRASH,
    CompiledVerdict.TIMEOUT,
    CompiledVerdict.WRONG,
    CompiledVerdict.RACE,
    CompiledVerdict.UNDEFINED_LANES,
    CompiledVerdict.REJECTED,
    CompiledVerdict.NOT_LOWERED,
    CompiledVerdict.ERROR,
    CompiledVerdict.MISSING,
    CompiledVerdict.DTYPE_GAP,
    CompiledVerdict.CANNOT_TRACE,
    CompiledVerdict.METAL_AND_ATEN,
    CompiledVerdict.ATEN,
    CompiledVerdict.METAL,
    CompiledVerdict.NO_KERNEL,
    CompiledVerdict.REFERENCE_FAILED,
    CompiledVerdict.SKIPPED,
)


def worst_compiled(verdicts: Iterable[CompiledVerdict]) -> CompiledVerdict | None:
    """The most severe of `verdicts`, or None when there are none.

    An operator of which one call is all Metal and another all aten is both: metal + aten.
    """
    present = set(verdicts)
    worst = next((verdict for verdict in SEVERITY if verdict in present), None)
    if worst is CompiledVerdict.ATEN and CompiledVerdict.METAL in present:
        return CompiledVerdict.METAL_AND_ATEN
    return worst


class FaultyStage(str, Enum):
    """The stage of compilation at fault for a wrong result, found by running each stage alone."""

    INDUCTOR = "Inductor's Metal"
    DECOMPOSITION = "decomposition"
    GRAPH = "graph traced for mps"
    EAGER = "eager kernel"


@dataclass(frozen=True)
class CompiledOutcome:
    """What one compiled call showed.

    Attributes:
        verdict: what became of it.
        outcome: what the judge says of it, as it does of a call that was not compiled.
        aten: the operators of aten that stayed calls, in order of names.
        kernels: how many Metal kernels were generated, forward and backward.
        graphs: how many graphs were compiled.
        breaks: why Dynamo broke the graph, each reason once.
        recompilations: how often a guard failed and the same code was compiled again.
        reason: what Dynamo, Inductor, the Metal compiler or the checks said, in one line; "" where it is right.
        line: the line of the generated source that was refused.
        faulty_stage: the compilation stage at fault for a wrong result.
        source: the generated Metal source.
    """

    verdict: CompiledVerdict
    outcome: Outcome
    aten: tuple[str, ...] = ()
    kernels: int = 0
    graphs: int = 0
    breaks: tuple[str, ...] = ()
    recompilations: int = 0
    reason: str = ""
    line: str = ""
    faulty_stage: FaultyStage | None = None
    source: str = ""


def of_uncompiled(outcome: Outcome) -> CompiledVerdict:
    """The verdict that does not depend on what was compiled: no evidence, a death, or what mps lacks."""
    return {
        CaseVerdict.SKIPPED: CompiledVerdict.SKIPPED,
        CaseVerdict.REFERENCE_FAILED: CompiledVerdict.REFERENCE_FAILED,
        CaseVerdict.TIMEOUT: CompiledVerdict.TIMEOUT,
        CaseVerdict.CRASH: CompiledVerdict.CRASH,
        CaseVerdict.MISSING: CompiledVerdict.MISSING,
        CaseVerdict.DTYPE_GAP: CompiledVerdict.DTYPE_GAP,
    }.get(outcome.verdict, CompiledVerdict.ERROR)
