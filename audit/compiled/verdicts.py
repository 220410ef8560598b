"""The verdicts on calls under torch.compile. Imports no torch."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum

from ..model.verdicts import CaseVerdict, Outcome


class CompiledVerdict(str, Enum):
    """The verdict on one compiled call."""

    METAL = "metal"
    """Inductor generated Metal for all of it, and the result is right."""
    METAL_AND_ATEN = "metal + aten"
    """Part of it is generated Metal, part are calls of aten; the result is right."""
    ATEN = "aten"
    """All computation is in calls of aten; the result is right."""
    NO_KERNEL = "no kernel"
    """Nothing is computed: only views and constants."""
    CANNOT_TRACE = "cannot trace"
    """Dynamo made no graph of it: it ran as eager code, or not at all."""
    NOT_LOWERED = "not lowered"
    """Inductor raised while it generated code."""
    REJECTED = "rejected"
    """The Metal compiler refuses the generated source."""
    WRONG = "wrong"
    """The compiled result differs from the CPU's."""
    UNDEFINED_LANES = "undefined lanes"
    """Right only if lanes without a thread read as 0."""
    RACE = "race"
    """Right in the executed order, but threads access the same memory without synchronization."""
    MISSING = "missing"
    """Part of it is a call of aten without an mps kernel."""
    DTYPE_GAP = "dtype gap"
    """It needs a dtype that mps does not have."""
    ERROR = "error"
    """The compiled call raised another error where the CPU returned."""
    TIMEOUT = "timeout"
    CRASH = "crash"
    REFERENCE_FAILED = "reference failed"
    SKIPPED = "skipped"

    @property
    def executed(self) -> bool:
        """Whether torch.compile ran."""
        return self not in (CompiledVerdict.REFERENCE_FAILED, CompiledVerdict.SKIPPED)

    @property
    def is_right(self) -> bool:
        """Whether the compiled result is the CPU's, in Metal or not."""
        return self in RIGHT

    @property
    def lowered(self) -> bool:
        """Whether at least part of the call is generated Metal, and the result is right."""
        return self in (CompiledVerdict.METAL, CompiledVerdict.METAL_AND_ATEN)

    @property
    def is_broken(self) -> bool:
        """Whether compiling breaks a working call. A call that Dynamo cannot trace runs eagerly and is not broken."""
        return self in BROKEN


RIGHT = frozenset(
    {CompiledVerdict.METAL, CompiledVerdict.METAL_AND_ATEN, CompiledVerdict.ATEN, CompiledVerdict.NO_KERNEL}
)

# From the worst to the best. The worst of several calls is the verdict of the operator.
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
BROKEN = frozenset(SEVERITY[: SEVERITY.index(CompiledVerdict.MISSING)])


def worst_compiled(verdicts: Iterable[CompiledVerdict]) -> CompiledVerdict | None:
    """The most severe of `verdicts`, or None when there are none.

    One call in Metal and another in aten together are metal + aten.
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
    """The outcome of one compiled call.

    Attributes:
        outcome: the judge's outcome, as for an eager call.
        aten: the operators that remain calls of aten, by name.
        kernels: how many Metal kernels were generated, forward and backward.
        graphs: how many graphs were compiled.
        breaks: why Dynamo broke the graph, each reason once.
        recompilations: how often a failed guard caused a recompilation.
        reason: the message of Dynamo, Inductor, the Metal compiler or the checks, in one line; "" if it is right.
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
    """The compiled verdict for outcomes that do not depend on compilation, such as a crash or a missing operator."""
    return {
        CaseVerdict.SKIPPED: CompiledVerdict.SKIPPED,
        CaseVerdict.REFERENCE_FAILED: CompiledVerdict.REFERENCE_FAILED,
        CaseVerdict.TIMEOUT: CompiledVerdict.TIMEOUT,
        CaseVerdict.CRASH: CompiledVerdict.CRASH,
        CaseVerdict.MISSING: CompiledVerdict.MISSING,
        CaseVerdict.DTYPE_GAP: CompiledVerdict.DTYPE_GAP,
    }.get(outcome.verdict, CompiledVerdict.ERROR)
