"""Who is answerable for a wrong result of a compiled call: each part of the way is run without the parts after it.

The plain call on mps that is wrong too is an eager kernel. `aot_eager_decomp_partition` runs what Inductor compiles,
its decompositions, with the CPU's own kernels: wrong there is a decomposition. What is left is generated code.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import torch

from ..cases import Case, seed_generators
from ..judging.agreement import Comparison
from ..judging.compare import Difference
from ..judging.execution import Execution, execute, gradients
from ..judging.judge import Recorder, Trial
from ..judging.reference import WideRuns
from ..judging.transfer import move
from ..verdicts import CaseVerdict
from .verdicts import Blame

DECOMPOSED = "aot_eager_decomp_partition"


def blame_for(case: Case, recorder: Recorder, seed: int, label: str, traceable: Callable[..., Any]) -> Blame:
    """Whom the wrong result of a case is due to.

    Args:
        traceable: the case's call in the form that was compiled.
    """
    eager = Trial(case, recorder, seed, label).outcome()
    if eager.verdict is CaseVerdict.WRONG:
        return Blame.EAGER
    return Blame.DECOMPOSITION if _decomposed_is_wrong(case, seed, label, traceable) else Blame.INDUCTOR


def _decomposed_is_wrong(case: Case, seed: int, label: str, traceable: Callable[..., Any]) -> bool:
    """Whether the decompositions compute something else on the CPU; what they refuse is no wrong result."""
    torch._dynamo.reset()
    case = replace(case, same_memory=False)  # as of any compiled call
    decomposed = replace(case, call=torch.compile(traceable, backend=DECOMPOSED))
    cotangents: list[torch.Tensor] = []
    seed_cpu = partial(seed_generators, seed, label)
    comparison = Comparison(case, WideRuns(case, cotangents, seed_cpu), "cpu", random=False)
    try:
        expected, actual = (_on_cpu(each, seed_cpu) for each in (case, decomposed))
        if isinstance(comparison.forward(actual, expected), Difference):
            return True
        if not expected.differentiable or not expected.inputs:
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
