"""Judges all cases of a kernel, and decides which outcomes are accepted.

`mpsmith kernels verify` and generated conformance tests use it. An audit uses the same judge, so the three agree.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from ...simulator.fallback_recorders import FallbackRecorder
from ..model.case import Case
from ..model.verdicts import CaseVerdict, Outcome
from .judge import judge


@dataclass(frozen=True)
class JudgedCase:
    """One case of a kernel and its outcome.

    Attributes:
        position: its index among the cases.
        outcome: the judge's outcome.
    """

    position: int
    case: Case
    outcome: Outcome

    @property
    def accepted(self) -> bool:
        """Whether the device itself computed the CPU's result. A fallback is not accepted."""
        return self.outcome.verdict is CaseVerdict.PASSED

    @property
    def refused(self) -> bool:
        """Whether the case was executed and not accepted."""
        return self.outcome.verdict.executed and not self.accepted

    @property
    def reason(self) -> str:
        """Why the case was not accepted, in one line."""
        if self.outcome.verdict is CaseVerdict.FALLBACK:
            return f"ran on the CPU: {', '.join(self.outcome.fallbacks)}"
        return f"{self.outcome.verdict.value}: {self.outcome.message}"


def judged(cases: Iterable[Case], recorder: FallbackRecorder, seed: int, label: str) -> Iterator[JudgedCase]:
    """Judge the cases lazily, one after the other.

    Args:
        cases: their order, `seed` and `label` make random operators reproducible.
        recorder: records which operators fall back on this kind of device.
    """
    for position, case in enumerate(cases):
        yield JudgedCase(position, case, judge(case, recorder, seed, f"{label} {position}"))
