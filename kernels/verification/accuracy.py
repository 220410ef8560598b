"""Measures how far the results of a family are from the exact ones, in ULP, and how far the CPU's are.

The judge decides what is right. This is for a person who has to decide whether to accept a kernel.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import torch

from ...audit.judging.execution import Execution
from ...audit.judging.judge import Trial
from ...audit.judging.reference import WideRuns
from ...audit.judging.transfer import WIDER
from ...audit.model.case import Case, seed_generators
from ...audit.model.verdicts import CaseVerdict
from ...audit.releases.surface.profiles import coverage_profile
from ...simulator.opening import device_of_this_process
from ..runtime import catalog
from ..runtime.registration import use
from .calls import KernelCall
from .source import calls_of
from .verify import SEED


@dataclass(frozen=True)
class Accuracy:
    """The results of the cases of one call in one dtype.

    Attributes:
        call: the name of the call.
        dtype: the dtype of the inputs.
        cases: how many were compared with the CPU and were right.
        wrong: how many were wrong, or fell back.
        ulps: the largest distance from the result in float64; None if it cannot be measured: integers, draws.
        cpu_ulps: the same for the CPU's results.
        backward: whether gradients were compared as well.
    """

    call: str
    dtype: str
    cases: int
    wrong: int
    ulps: float | None
    cpu_ulps: float | None
    backward: bool


def accuracy_of(family: str) -> list[Accuracy]:
    """Run the family's own cases, unvaried, with its kernels. Raises UnknownKernelError for an unknown family."""
    with use(*catalog.overloads(family)):
        return [_measured(call, dtype) for call in calls_of(family) for dtype in call.dtypes]


def _measured(call: KernelCall, dtype: torch.dtype) -> Accuracy:
    name = str(dtype).removeprefix("torch.")
    cases = wrong = 0
    backward = False
    ours: list[float] = []
    cpus: list[float] = []
    for position, case in enumerate(call.cases(dtype)):
        label = f"{call.label}, {name} {position}"
        trial = Trial(case, device_of_this_process(coverage_profile).recorder, SEED, label)
        outcome = trial.outcome()
        if not outcome.verdict.executed:
            continue
        if outcome.verdict is not CaseVerdict.PASSED or trial.mps is None or trial.cpu is None:
            wrong += 1
            continue
        cases += 1
        backward |= outcome.backward
        exact = None if case.distribution else _exact(case, label)
        if exact is not None:
            ours += _distances(trial.mps, exact)
            cpus += _distances(trial.cpu, exact)
    return Accuracy(call.label, name, cases, wrong, max(ours, default=None), max(cpus, default=None), backward)


def _exact(case: Case, label: str) -> Execution | None:
    return WideRuns(case, [], partial(seed_generators, SEED, label)).exact


def _distances(run: Execution, exact: Execution) -> Sequence[float]:
    """The largest distance for each floating output."""
    pairs = zip(run.outputs, exact.outputs, strict=False)
    return [ulps(x.detach().cpu(), wide.detach()) for x, wide in pairs if _comparable(x, wide)]


def _comparable(x: object, wide: object) -> bool:
    return (
        isinstance(x, torch.Tensor)
        and isinstance(wide, torch.Tensor)
        and x.dtype in WIDER
        and x.shape == wide.shape
        and x.layout is torch.strided
    )


def ulps(actual: torch.Tensor, exact: torch.Tensor) -> float:
    """The largest distance from float64 results, in units of the last place of `actual`'s dtype at the exact result.

    Only finite elements count; for complex numbers, both parts.
    """
    if actual.is_complex():
        actual, exact = torch.view_as_real(actual.resolve_conj()), torch.view_as_real(exact.resolve_conj())
    limits = torch.finfo(actual.dtype)
    wide, computed = exact.to(torch.float64), actual.to(torch.float64)
    counts = wide.isfinite() & computed.isfinite()
    if not bool(counts.any()):
        return 0.0
    wide, computed = wide[counts], computed[counts]
    exponent = wide.abs().clamp(min=limits.smallest_normal).log2().floor()
    unit = torch.exp2(exponent) * limits.eps
    worst = float(((computed - wide).abs() / unit).max())
    return worst if math.isfinite(worst) else 0.0
