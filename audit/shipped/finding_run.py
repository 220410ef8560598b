"""Runs the call of a known finding with the shipped kernels of a release."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor

from ...registry.found_wrong import FoundWrong
from ...simulator.device.pause import paused
from ...simulator.fallback_recorders import FallbackRecorder
from ..cases.sources.known_wrong import made
from ..judging.judge import Trial, judge
from ..model.case import Case, described
from ..model.launches import grade_of_case, kernels_in
from ..model.verdicts import CaseVerdict, Grade, Outcome
from .case_launches import launches
from .finding_result import FindingResult, FurthestElement
from .kernels import AuditedKernels
from .ulp_sensitivity import ulp_sensitivity_of

SEED = 0


def result_of(finding: FoundWrong, kernels: AuditedKernels, recorder: FallbackRecorder) -> FindingResult:
    """Run the call of a finding with shipped kernels.

    Args:
        finding: a wrong result of a release, with its call.
        kernels: the shipped kernels of this process.
        recorder: records which operators fall back.
    """
    case = made(finding.name, finding.case)
    places: list[FurthestElement] = []
    launches()
    outcome = _judged(case, recorder, finding.name, lambda trial: places.extend(_largest_difference(trial)))
    launched = launches()
    grade = grade_of_case(launched, outcome)
    stood_in = tuple(f"{name}: {reason}" for name, counts in launched.items() for reason in counts.stood_in)
    names = tuple(kernels_in(launched))
    ulp_sensitivity = None
    if outcome.verdict is CaseVerdict.WRONG and grade is Grade.SHIPPED_KERNEL:

        def judge_again() -> tuple[Outcome, Grade | None]:
            launches()
            again = _judged(case, recorder, finding.name, lambda trial: None)
            return again, grade_of_case(launches(), again)

        ulp_sensitivity = ulp_sensitivity_of(kernels, names, judge_again)
    return FindingResult(
        name=finding.name,
        verdict=outcome.verdict,
        grade=grade,
        message=outcome.message,
        kernels=names,
        stood_in=stood_in,
        inputs=described(case),
        place=places[0] if places and outcome.verdict is CaseVerdict.WRONG else None,
        ulp_sensitivity=ulp_sensitivity,
    )


def _judged(case: Case, recorder: FallbackRecorder, label: str, look: Callable[[Trial], None]) -> Outcome:
    return judge(case, recorder, SEED, label, on_executed=look)


def _largest_difference(trial: Trial) -> Iterator[FurthestElement]:
    """The element with the largest difference, of the first output or gradient that differs."""
    if trial.cpu is None or trial.mps is None:
        return
    with paused():
        for kind in ("outputs", "gradients"):
            pairs = zip(getattr(trial.mps, kind), getattr(trial.cpu, kind), strict=False)
            for number, (mine, cpus) in enumerate(pairs):
                place = _furthest_element(mine, cpus)
                if place is not None:
                    yield FurthestElement(kind, number, *place)
                    return


def _furthest_element(mine: Any, cpus: Any) -> tuple[int, str, str, str, str] | None:
    """The flat index of the element with the largest difference, both values, and the bits of both."""
    if not isinstance(mine, Tensor) or not isinstance(cpus, Tensor) or mine.shape != cpus.shape or not cpus.numel():
        return None
    flat_mine, flat_cpus = mine.detach().cpu().flatten(), cpus.detach().flatten()
    kind = torch.complex128 if cpus.is_complex() else torch.float64
    wide_mine, wide_cpus = flat_mine.to(kind), flat_cpus.to(kind)
    off = (wide_mine - wide_cpus).abs() / wide_cpus.abs().clamp_min(1e-300)
    same = (wide_mine == wide_cpus) | (wide_mine.isnan() & wide_cpus.isnan())
    off = torch.where(same, 0.0, off.nan_to_num(nan=torch.inf))
    at = int(off.argmax())
    if not off[at] > 0:
        return None
    mine_there, cpus_there = flat_mine[at], flat_cpus[at]
    return at, str(mine_there.item()), str(cpus_there.item()), bits_of(mine_there), bits_of(cpus_there)


def bits_of(value: Tensor) -> str:
    """The bits of a number in hexadecimal; of both parts of a complex number."""
    parts = torch.view_as_real(value) if value.is_complex() else value.reshape(1)
    size = parts.element_size()
    stored = bytes(parts.contiguous().view(torch.uint8).tolist())
    return " ".join(f"0x{stored[i : i + size][::-1].hex()}" for i in range(0, len(stored), size))
