"""Whether a wrong result of shipped kernels depends on the last bits of Apple's math functions. Imports no torch."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ...simulator.errors import SimulatorError
from ..model.verdicts import CaseVerdict, Grade, Outcome, UlpSensitivity
from .kernels import AuditedKernels

SEEDS = (1, 2, 3)


def ulp_sensitivity_of(
    kernels: AuditedKernels, launched: Sequence[str], judge_again: Callable[[], tuple[Outcome, Grade | None]]
) -> UlpSensitivity | None:
    """The ULP sensitivity of a wrong case, from its results with perturbed math functions; None if unknown.

    Args:
        kernels: the kernels of the worker; they are perturbed while the case is judged again.
        launched: the names of the kernels that the case launched.
        judge_again: returns the verdict on the case, and the grade of its evidence.
    """
    try:
        if not any(map(kernels.uses_mathematics, launched)):
            return UlpSensitivity.EXACT
    except SimulatorError:
        return None
    for seed in SEEDS:
        with kernels.moved(seed):
            outcome, grade = judge_again()
        if grade is not Grade.SHIPPED_KERNEL:
            return None
        if outcome.verdict is not CaseVerdict.WRONG:
            return UlpSensitivity.SENSITIVE
    return UlpSensitivity.INSENSITIVE
