"""Counts the launches of shipped kernels in a run, and the calls that kept the stand-in."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from functools import cache
from itertools import groupby

from ...model.group import GroupKey
from ...model.launches import Launches
from ...model.selection import is_narrowed
from ...releases.data import FOLDER
from ...releases.surface.overloads import Surface
from ...releases.wheel.metal_dtypes import words_without_types
from ...store.records import Run
from ...store.store import Store
from ..run_data import RunData

LACKING = "the release has no kernel of the name that the convention asks for"
# A kernel that fewer cases launch may be wrong for a reason that none of them has.
ENOUGH_CASES = 3
# The release whose templates `never_launched.tsv` knows.
KNOWN_RELEASE = "2.13.0"
ONLY_BESIDE_STAND_INS = "launched its kernels, but never in a case that shipped kernels alone computed"


@dataclass(frozen=True)
class ShippedLaunches:
    """Launches and declined calls of an overload, in the cases with shipped kernels.

    Attributes:
        cases: cases of the grade *shipped kernel* or *host code* that it launched a kernel in.
        calls: calls whose values came from shipped kernels.
        kernels: the cases that launched each kernel.
        stood_in: cases in which calls kept the stand-in's values, by reason.
    """

    cases: int
    calls: int
    kernels: Mapping[str, int] = field(default_factory=dict)
    stood_in: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class StandInReason:
    """Why native overloads took no shipped kernel in any case that only kernels computed, most overloads first.

    `overloads` are those for which this is the most frequent reason; `cases` counts each once for every such overload.
    """

    reason: str
    overloads: tuple[str, ...]
    cases: int


@dataclass(frozen=True)
class KernelTemplate:
    """The kernels that have one name but for their dtypes: what one template of Metal source was compiled to.

    Attributes:
        name: the kernels' name without dtypes ("add_dense_broadcast").
        kernels: how many the release has.
        launched: how many of them were launched.
        cases: the cases that launched each, summed.
        reason: why fewer than ENOUGH_CASES cases do, or "".
    """

    name: str
    kernels: int
    launched: int
    cases: int
    reason: str = ""

    @property
    def is_missed(self) -> bool:
        """Whether too few cases launch it, and nothing says why."""
        return self.cases < ENOUGH_CASES and not self.reason


@dataclass(frozen=True)
class ShippedEvidence:
    """The shipped kernels of one run.

    Attributes:
        release: the release of torch whose kernels were launched.
        kernels: how many kernels it has.
        launches: the cases that launched each kernel, the most first.
        never_launched: the kernels that no case launched.
        templates: the kernels by name without dtypes, those of the fewest cases first.
        native: how many overloads have a native kernel on mps, says the surface.
        native_shipped: how many of those have evidence of the grade *shipped kernel*.
        stood_in: why the others that were called have none.
    """

    release: str
    kernels: int
    launches: Mapping[str, int]
    never_launched: tuple[str, ...]
    templates: tuple[KernelTemplate, ...]
    native: int
    native_shipped: int
    stood_in: tuple[StandInReason, ...]


class GroupLaunches:
    """The launches of a run by group."""

    def __init__(self, launches: Iterable[tuple[GroupKey, str, Launches]]) -> None:
        self._by_overload: defaultdict[str, Launches] = defaultdict(Launches)
        self._dtypes: defaultdict[str, set[str]] = defaultdict(set)
        self._kernels: Counter[str] = Counter()
        for key, of_group in groupby(launches, key=lambda row: row[0]):
            most: Counter[str] = Counter()
            for _, overload, counts in of_group:
                self._by_overload[overload].add(counts)
                most |= counts.kernels
                if counts.cases:
                    self._dtypes[overload].add(key.dtype)
            self._kernels.update(most)

    def computed(self, overload: str, dtype: str | None = None) -> bool:
        """Whether a kernel of the overload was launched in a case that only shipped kernels computed."""
        dtypes = self._dtypes.get(overload, set())
        return bool(dtypes) if dtype is None else dtype in dtypes

    def of(self, overload: str) -> ShippedLaunches | None:
        """Launches and declined calls of the overload; None if no case with shipped kernels called it."""
        launches = self._by_overload.get(overload)
        if launches is None:
            return None
        return ShippedLaunches(
            launches.cases, launches.calls, _by_number(launches.kernels), _by_number(launches.stood_in)
        )

    def kernels(self) -> Counter[str]:
        """How many cases launched each kernel; where several overloads of a group did, those of one of them."""
        return self._kernels

    def stand_in_reasons(self, overloads: Iterable[str]) -> tuple[StandInReason, ...]:
        """Why these overloads ran no shipped kernel; for each overload, its most frequent reason."""
        by_reason: defaultdict[str, list[tuple[str, int]]] = defaultdict(list)
        for overload in overloads:
            launches = self._by_overload.get(overload)
            if launches is not None and not self.computed(overload):
                reason, cases = _first_reason(launches)
                by_reason[reason].append((overload, cases))
        listed = [
            StandInReason(reason, tuple(name for name, _ in named), sum(cases for _, cases in named))
            for reason, named in by_reason.items()
        ]
        return tuple(sorted(listed, key=lambda stood_in: (-len(stood_in.overloads), stood_in.reason)))


def _first_reason(launches: Launches) -> tuple[str, int]:
    """The most frequent reason. Reasons that name a kernel which the release lacks count as one."""
    if not launches.stood_in:
        return ONLY_BESIDE_STAND_INS, max(launches.kernels.values(), default=0)
    reasons: Counter[str] = Counter()
    for reason, cases in launches.stood_in.items():
        reasons[LACKING if reason.startswith("no kernel ") else reason] += cases
    return min(reasons.items(), key=lambda item: (-item[1], item[0]))


@cache
def _reasons() -> tuple[tuple[str, str], ...]:
    """Patterns of templates that too few cases launch, each with the reason."""
    lines = (FOLDER / "never_launched.tsv").read_text(encoding="utf-8").splitlines()[1:]
    return tuple((pattern, reason) for pattern, _, reason in (line.partition("\t") for line in lines))


def kernel_templates(names: Iterable[str], launched: Mapping[str, int]) -> tuple[KernelTemplate, ...]:
    """The kernels of a release by template, those of the fewest cases first.

    Args:
        names: of all kernels.
        launched: how many cases launched each kernel.
    """
    by_template: defaultdict[str, list[str]] = defaultdict(list)
    for name in names:
        by_template["_".join(words_without_types(name))].append(name)
    templates = []
    for template, kernels in by_template.items():
        cases = [launched[kernel] for kernel in kernels if kernel in launched]
        reason = next((reason for pattern, reason in _reasons() if fnmatchcase(template, pattern)), "")
        templates.append(KernelTemplate(template, len(kernels), len(cases), sum(cases), reason))
    return tuple(sorted(templates, key=lambda kernel_template: (kernel_template.cases, kernel_template.name)))


def missed_templates(store: Store, run: Run) -> list[KernelTemplate]:
    """The templates that a whole audit launches in fewer than ENOUGH_CASES cases, without a reason.

    Empty for an audit of a part, and for one that launched no kernels of KNOWN_RELEASE.
    """
    settings = run.settings
    if (
        _release_of_kernels(run) != KNOWN_RELEASE
        or run.finished is None
        or is_narrowed(settings)
        or settings.get("samples", "quick") == "quick"
    ):
        return []
    launched = GroupLaunches(store.launches(run.id)).kernels()
    return [template for template in kernel_templates(store.shipped_kernels(run.id), launched) if template.is_missed]


def shipped_evidence(data: RunData, surface: Surface, launches: GroupLaunches) -> ShippedEvidence | None:
    """The shipped kernels of a run; None if it launched none, or if its launches were not counted."""
    release, names = _release_of_kernels(data.run), data.shipped_kernels
    if release is None or not names:
        return None
    launched = launches.kernels()
    native = [overload.name for overload in surface.overloads if overload.dispatch.has_kernel]
    return ShippedEvidence(
        release=release,
        kernels=len(names),
        launches=_by_number(launched),
        never_launched=tuple(name for name in names if name not in launched),
        templates=kernel_templates(names, launched),
        native=len(native),
        native_shipped=sum(map(launches.computed, native)),
        stood_in=launches.stand_in_reasons(native),
    )


def _release_of_kernels(run: Run) -> str | None:
    """The release whose compiled kernels the run launched."""
    release = run.environment.get("shipped") or run.environment.get("host_code", {}).get("kernels")
    return str(release) if release else None


def _by_number(counted: Mapping[str, int]) -> dict[str, int]:
    return dict(sorted(counted.items(), key=lambda item: (-item[1], item[0])))
