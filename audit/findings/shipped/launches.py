"""Counts the launches of shipped kernels in a run, and the calls that kept the stand-in."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from ...model.group import GroupKey
from ...model.launches import Launches
from ...releases.surface.overloads import Surface
from ..run_data import RunData

LACKING = "the release has no kernel of the name that the convention asks for"
ONLY_BESIDE_STAND_INS = "launched its kernels, but never in a case that shipped kernels alone computed"


@dataclass(frozen=True)
class ShippedLaunches:
    """What became of the calls of an overload in the cases that took shipped kernels.

    Attributes:
        cases: cases of the grade *shipped kernel* that it launched a kernel in.
        calls: calls whose values came from shipped kernels.
        kernels: launches by kernel.
        stood_in: calls that kept the stand-in's values, by reason.
    """

    cases: int
    calls: int
    kernels: Mapping[str, int] = field(default_factory=dict)
    stood_in: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class StoodIn:
    """Why native overloads took no shipped kernel in any case that a kernel alone computed, most overloads first.

    `overloads` are those for which this is the most frequent reason, `calls` theirs.
    """

    reason: str
    overloads: tuple[str, ...]
    calls: int


@dataclass(frozen=True)
class ShippedEvidence:
    """The shipped kernels of one run.

    Attributes:
        release: the release of torch whose kernels were launched.
        kernels: how many kernels it has.
        launches: how often each was launched, the most often first.
        never_launched: the kernels that no case launched.
        native: how many overloads have a native kernel on mps, says the surface.
        native_shipped: how many of those have evidence of the grade *shipped kernel*.
        stood_in: why the others that were called have none.
    """

    release: str
    kernels: int
    launches: Mapping[str, int]
    never_launched: tuple[str, ...]
    native: int
    native_shipped: int
    stood_in: tuple[StoodIn, ...]

    @property
    def total(self) -> int:
        """Launches of all kernels together."""
        return sum(self.launches.values())


class GroupLaunches:
    """The launches of a run by group."""

    def __init__(self, launches: Iterable[tuple[GroupKey, str, Launches]]) -> None:
        self._by_overload: defaultdict[str, Launches] = defaultdict(Launches)
        self._dtypes: defaultdict[str, set[str]] = defaultdict(set)
        for key, overload, each in launches:
            self._by_overload[overload].add(each)
            if each.cases:
                self._dtypes[overload].add(key.dtype)

    def computed(self, overload: str, dtype: str | None = None) -> bool:
        """Whether a kernel of the overload was launched in a case that shipped kernels alone computed."""
        dtypes = self._dtypes.get(overload, set())
        return bool(dtypes) if dtype is None else dtype in dtypes

    def of(self, overload: str) -> ShippedLaunches | None:
        """What became of the overload's calls; None where no case with shipped kernels called it."""
        found = self._by_overload.get(overload)
        if found is None:
            return None
        return ShippedLaunches(found.cases, found.calls, _by_number(found.kernels), _by_number(found.stood_in))

    def kernels(self) -> Counter[str]:
        """How often each kernel was launched."""
        together: Counter[str] = Counter()
        for each in self._by_overload.values():
            together.update(each.kernels)
        return together

    def standing_in(self, overloads: Iterable[str]) -> tuple[StoodIn, ...]:
        """Why these overloads took no shipped kernel, by the reason most frequent with each."""
        by_reason: defaultdict[str, list[tuple[str, int]]] = defaultdict(list)
        for overload in overloads:
            found = self._by_overload.get(overload)
            if found is not None and not self.computed(overload):
                reason, calls = _first_reason(found)
                by_reason[reason].append((overload, calls))
        listed = [
            StoodIn(reason, tuple(name for name, _ in named), sum(calls for _, calls in named))
            for reason, named in by_reason.items()
        ]
        return tuple(sorted(listed, key=lambda each: (-len(each.overloads), each.reason)))


def _first_reason(launches: Launches) -> tuple[str, int]:
    """The most frequent reason; those that name a kernel each, which the release lacks, are one."""
    if not launches.stood_in:
        return ONLY_BESIDE_STAND_INS, launches.calls
    reasons: Counter[str] = Counter()
    for reason, calls in launches.stood_in.items():
        reasons[LACKING if reason.startswith("no kernel ") else reason] += calls
    return min(reasons.items(), key=lambda item: (-item[1], item[0]))


def shipped_evidence(data: RunData, surface: Surface, launches: GroupLaunches) -> ShippedEvidence | None:
    """The shipped kernels of a run; None where it launched none."""
    release = data.run.environment.get("shipped")
    if release is None:
        return None
    names = data.shipped_kernels
    launched = launches.kernels()
    native = [overload.name for overload in surface.overloads if overload.dispatch.has_kernel]
    return ShippedEvidence(
        release=str(release),
        kernels=len(names),
        launches=_by_number(launched),
        never_launched=tuple(name for name in names if name not in launched),
        native=len(native),
        native_shipped=sum(map(launches.computed, native)),
        stood_in=launches.standing_in(native),
    )


def _by_number(counted: Mapping[str, int]) -> dict[str, int]:
    return dict(sorted(counted.items(), key=lambda item: (-item[1], item[0])))
