"""Finds the compilation stage at fault for a wrong result, by running each stage without the later ones.

If the eager call on mps is wrong too, an eager kernel is at fault. `aot_eager_decomp_partition` runs Inductor's
decompositions with eager kernels. If it is wrong on the CPU, a decomposition is at fault. If it is wrong only on mps,
the graph traced for mps is: a decomposition depends on the device, or a registered kernel has no gradient. Otherwise
Inductor is: its lowering, or the Metal that it generates.
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

# How the results of random calls are compared.
RANDOM = ("random", "distribution")
DECOMPOSED = "aot_eager_decomp_partition"


def faulty_stage_of(
    case: Case, recorder: FallbackRecorder, seed: int, label: str, compiled: CompiledOutcome
) -> FaultyStage:
    """The compilation stage at fault for the wrong result of a case.

    Args:
        case: the case with its eager call.
        compiled: the outcome of the compiled call.
    """
    stage = compiled.outcome.stage
    if _is_wrong(case, recorder, seed, label, stage):
        return FaultyStage.EAGER
    if _decomposed_is_wrong(case, seed, label, stage, random=compiled.outcome.compared in RANDOM):
        return FaultyStage.DECOMPOSITION
    try:
        on_mps = CompiledCall(case, dynamic=False, backend=DECOMPOSED)
        return FaultyStage.GRAPH if _is_wrong(on_mps.case, recorder, seed, label, stage) else FaultyStage.INDUCTOR
    finally:
        torch._dynamo.reset()


def _is_wrong(case: Case, recorder: FallbackRecorder, seed: int, label: str, stage: str) -> bool:
    """Whether the case is wrong on mps at this stage. An error is not a wrong result."""
    outcome = Trial(case, recorder, seed, label).outcome()
    if outcome.verdict is not CaseVerdict.WRONG or outcome.message.startswith("raises "):
        return False
    return outcome.stage == "forward" or stage == "backward"


def _decomposed_is_wrong(case: Case, seed: int, label: str, stage: str, *, random: bool) -> bool:
    """Whether the decompositions are wrong on the CPU at this stage. An error is not a wrong result."""
    torch._dynamo.reset()
    call: Callable[..., Any] = torch.compile(traceable(case.call), backend=DECOMPOSED)
    case = replace(case, same_memory=False)  # as for every compiled call
    cotangents: list[torch.Tensor] = []
    seed_cpu = partial(seed_generators, seed, label)
    comparison = Comparison(case, WideRuns(case, cotangents, seed_cpu), "cpu", random=random)
    try:
        expected, actual = (_on_cpu(variant, seed_cpu) for variant in (case, replace(case, call=call)))
        if isinstance(comparison.forward(actual, expected), Difference):
            return True
        if stage != "backward" or not expected.differentiable or not expected.inputs:
            return False
        cotangents.extend(map(torch.randn_like, expected.differentiable))
        for execution in (expected, actual):
            execution.gradients = gradients(execution, [cotangent.clone() for cotangent in cotangents])
        return isinstance(comparison.backward(actual, expected), Difference)
    except Exception:  # an error of the decomposed call is not a wrong result
        return False
    finally:
        torch._dynamo.reset()


def _on_cpu(case: Case, seed_cpu: Callable[[], None]) -> Execution:
    seed_cpu()
    return execute(case, move(case.args, case.kwargs, "cpu"))
