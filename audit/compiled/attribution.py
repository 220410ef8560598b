"""Who is answerable for a wrong result of a compiled call: each part of the way is run without the parts after it.

The plain call on mps that is wrong too is an eager kernel. `aot_eager_decomp_partition` runs what Inductor compiles,
its decompositions, with eager kernels: wrong with the CPU's is a decomposition; wrong on mps alone is the graph that
was traced for mps, where a decomposition asks for the device, or a kernel is registered that has no gradient. What is
left is Inductor's: its lowering, or the Metal that it writes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import torch

from ...simulator.fallback_recorders import FallbackRecorder
from ..judging.agreement import Comparison
from ..judging.compare import Difference
from ..judging.execution import Execution, execute, gradients
from ..judging.judge import Trial
from ..judging.reference import WideRuns
from ..judging.transfer import move
from ..model.case import Case, seed_generators
from ..model.verdicts import CaseVerdict
from .call import CompiledCall, traceable
from .verdicts import CompiledOutcome, FaultyStage

# What a call that draws is compared in.
RANDOM = ("random", "distribution")
DECOMPOSED = "aot_eager_decomp_partition"


def faulty_stage_of(
    case: Case, recorder: FallbackRecorder, seed: int, label: str, found: CompiledOutcome
) -> FaultyStage:
    """Whom the wrong result of a case is due to.

    Args:
        case: the case, its call as it is.
        found: what the compiled call showed.
    """
    stage = found.outcome.stage
    if _is_wrong(case, recorder, seed, label, stage):
        return FaultyStage.EAGER
    if _decomposed_is_wrong(case, seed, label, stage, random=found.outcome.compared in RANDOM):
        return FaultyStage.DECOMPOSITION
    try:
        on_mps = CompiledCall(case, dynamic=False, backend=DECOMPOSED)
        return FaultyStage.GRAPH if _is_wrong(on_mps.case, recorder, seed, label, stage) else FaultyStage.INDUCTOR
    finally:
        torch._dynamo.reset()


def _is_wrong(case: Case, recorder: FallbackRecorder, seed: int, label: str, stage: str) -> bool:
    """Whether the case is wrong on mps by then; one that raises shows no wrong result."""
    outcome = Trial(case, recorder, seed, label).outcome()
    if outcome.verdict is not CaseVerdict.WRONG or outcome.message.startswith("raises "):
        return False
    return outcome.stage == "forward" or stage == "backward"


def _decomposed_is_wrong(case: Case, seed: int, label: str, stage: str, *, random: bool) -> bool:
    """Whether the decompositions compute something else on the CPU by then; what they refuse is no wrong result."""
    torch._dynamo.reset()
    call: Callable[..., Any] = torch.compile(traceable(case.call), backend=DECOMPOSED)
    case = replace(case, same_memory=False)  # as of any compiled call
    cotangents: list[torch.Tensor] = []
    seed_cpu = partial(seed_generators, seed, label)
    comparison = Comparison(case, WideRuns(case, cotangents, seed_cpu), "cpu", random=random)
    try:
        expected, actual = (_on_cpu(each, seed_cpu) for each in (case, replace(case, call=call)))
        if isinstance(comparison.forward(actual, expected), Difference):
            return True
        if stage != "backward" or not expected.differentiable or not expected.inputs:
            return False
        cotangents.extend(map(torch.randn_like, expected.differentiable))
        for execution in (expected, actual):
            execution.gradients = gradients(execution, [each.clone() for each in cotangents])
        return isinstance(comparison.backward(actual, expected), Difference)
    except Exception:  # whatever the decomposed call raises, it shows no wrong result
        return False
    finally:
        torch._dynamo.reset()


def _on_cpu(case: Case, seed_cpu: Callable[[], None]) -> Execution:
    seed_cpu()
    return execute(case, move(case.args, case.kwargs, "cpu"))
