"""Whether a kernel is right: every one of its cases through the judge, and which outcomes count for it.

The one engine behind `mpsmith kernels verify` and the tests that come with a scaffold. An audit hands its cases to the
same judge, so that the three cannot disagree.
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
    """One case of a kernel and what it showed.

    Attributes:
        position: its place among the cases.
        case: the case.
        outcome: the judge's.
    """

    position: int
    case: Case
    outcome: Outcome

    @property
    def accepted(self) -> bool:
        """Whether the device computed the CPU's result itself: what fell back to the CPU is no kernel's result."""
        return self.outcome.verdict is CaseVerdict.PASSED

    @property
    def refused(self) -> bool:
        """Whether the case speaks against the kernel: it was executed, and not accepted."""
        return self.outcome.verdict.executed and not self.accepted

    @property
    def reason(self) -> str:
        """Why the case was not accepted, in one line."""
        if self.outcome.verdict is CaseVerdict.FALLBACK:
            return f"ran on the CPU: {', '.join(self.outcome.fallbacks)}"
        return f"{self.outcome.verdict.value}: {self.outcome.message}"


def judged(cases: Iterable[Case], recorder: FallbackRecorder, seed: int, label: str) -> Iterator[JudgedCase]:
    """Judge the cases one after the other, each when it is asked for.

    Args:
        cases: in their order, which makes random operators repeatable together with `seed` and `label`.
        recorder: attributes fallbacks to operators, for the kind of device at hand.
    """
    for position, case in enumerate(cases):
        yield JudgedCase(position, case, judge(case, recorder, seed, f"{label} {position}"))
