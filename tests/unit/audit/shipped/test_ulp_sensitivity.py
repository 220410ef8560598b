"""A wrong result of shipped kernels is judged again with their mathematics moved: which ones depend on last bits."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import cast

import pytest

from mpsmith.audit.model.verdicts import CaseVerdict, Grade, Outcome, UlpSensitivity
from mpsmith.audit.shipped.kernels import AuditedKernels
from mpsmith.audit.shipped.ulp_sensitivity import SEEDS, ulp_sensitivity_of
from mpsmith.simulator.errors import SimulatorError

PASSED, WRONG, CRASH = (Outcome(verdict) for verdict in (CaseVerdict.PASSED, CaseVerdict.WRONG, CaseVerdict.CRASH))


class FakeKernels:
    """Kernels of which those called `exp` compute with Apple's mathematics."""

    def __init__(self) -> None:
        self.seeds: list[int] = []

    def uses_mathematics(self, name: str) -> bool:
        if name == "damaged":
            raise SimulatorError("no bitcode")
        return name == "exp"

    @contextmanager
    def moved(self, seed: int) -> Iterator[None]:
        self.seeds.append(seed)
        yield


def sensitivity(launched: list[str], *outcomes: Outcome, grade: Grade = Grade.SHIPPED_KERNEL) -> UlpSensitivity | None:
    """The result of a case whose kernels give these outcomes, one after the other, when moved."""
    kernels, given = FakeKernels(), iter(outcomes)
    result = ulp_sensitivity_of(cast(AuditedKernels, kernels), launched, lambda: (next(given), grade))
    assert kernels.seeds == list(SEEDS[: len(outcomes)])
    return result


def test_kernels_without_mathematics_are_not_moved() -> None:
    assert sensitivity(["add", "copy"]) is UlpSensitivity.EXACT


def test_a_result_that_is_wrong_for_every_seed_is_insensitive() -> None:
    assert sensitivity(["add", "exp"], *[WRONG] * len(SEEDS)) is UlpSensitivity.INSENSITIVE


@pytest.mark.parametrize("last", [PASSED, CRASH])
def test_a_result_that_is_right_once_is_sensitive_to_one_ulp(last: Outcome) -> None:
    assert sensitivity(["exp"], WRONG, last) is UlpSensitivity.SENSITIVE


def test_dispatch_only_results_have_no_sensitivity() -> None:
    assert sensitivity(["exp"], PASSED, grade=Grade.DISPATCH_ONLY) is None


def test_a_kernel_that_cannot_be_read_says_nothing() -> None:
    assert sensitivity(["damaged"]) is None
