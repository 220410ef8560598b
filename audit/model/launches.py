"""Counts the calls of overloads that launched shipped kernels. Imports no torch."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

from .verdicts import Grade, Outcome


@dataclass
class Launches:
    """Launches and declined calls of one overload, in one case or in several.

    Attributes:
        calls: how many calls took their values from shipped kernels.
        kernels: launches by kernel name in one case; for several cases, the number of cases that launched the kernel.
        stood_in: by reason, the calls that kept the stand-in's values; for several cases, the number of such cases.
        cases: in how many cases of the grade *shipped kernel* or *host code* the overload launched a kernel.
    """

    calls: int = 0
    kernels: Counter[str] = field(default_factory=Counter)
    stood_in: Counter[str] = field(default_factory=Counter)
    cases: int = 0

    def add(self, other: Launches) -> None:
        """Add the counts of `other`."""
        self.calls += other.calls
        self.kernels.update(other.kernels)
        self.stood_in.update(other.stood_in)
        self.cases += other.cases


# By overload ("aten::add.Tensor").
LaunchesByOverload = dict[str, Launches]


def grade_of_case(launches: Mapping[str, Launches], outcome: Outcome) -> Grade:
    """The grade of a case that ran with shipped kernels in place.

    It is *shipped kernel* only if a shipped kernel was launched, and neither a stand-in nor the CPU computed anything.
    """
    launched = any(counts.calls for counts in launches.values())
    whole = not outcome.fallbacks and not any(counts.stood_in for counts in launches.values())
    return Grade.SHIPPED_KERNEL if launched and whole else Grade.DISPATCH_ONLY


def kernels_in(launches: Mapping[str, Launches]) -> list[str]:
    """The names of the kernels that were launched, each once."""
    return list(dict.fromkeys(kernel for counts in launches.values() for kernel in counts.kernels))


def count_case(into: LaunchesByOverload, launches: Mapping[str, Launches], grade: Grade | None) -> None:
    """Add the calls of one case with this grade to those of other cases.

    Each kernel and each reason counts once: how many calls two threads make in a case depends on timing.
    """
    for overload, added in launches.items():
        added.cases = int(grade in (Grade.SHIPPED_KERNEL, Grade.HOST_CODE) and added.calls > 0)
        added.kernels, added.stood_in = (
            Counter(dict.fromkeys(counts, 1)) for counts in (added.kernels, added.stood_in)
        )
        into.setdefault(overload, Launches()).add(added)
