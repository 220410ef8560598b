"""How the operators that a network called stand on a release: the recording of one torch, joined with each coverage.

The recording says what is called. Whether a release has a kernel for it is read from the data of its macOS wheel
(`mpsmith coverage`), so that no run per release is needed. What a release would call instead of an overload that it
does not have is not known, and said to be unknown.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache

from ...audit.releases import data as release_data
from ...audit.releases.coverage import ReleaseCoverage, from_data
from ...audit.releases.data import release_order
from ...audit.releases.surface.overloads import Dispatch
from ..summary import operator_of
from .observation import Called, Mode, Observation, Outcome

# The oldest torch that `import mpsmith.kernels` works with.
OLDEST_WITH_KERNELS = (2, 7, 0)
_NAMESPACE = "aten::"


@dataclass(frozen=True)
class Standing:
    """The overloads that were called, by how they stand on one release.

    Attributes:
        native: a kernel of its own.
        composite: made of others, which are judged themselves.
        fallback: always runs on the CPU, whatever the settings.
        missing: no kernel: NotImplementedError, or the CPU where PYTORCH_ENABLE_MPS_FALLBACK is set.
        unknown: not there, or made of others that were not recorded.
        replaced: those of `fallback` and `missing` that `import mpsmith.kernels` has a kernel for.
    """

    native: frozenset[str]
    composite: frozenset[str]
    fallback: frozenset[str]
    missing: frozenset[str]
    unknown: frozenset[str]
    replaced: frozenset[str]

    @property
    def lacking(self) -> frozenset[str]:
        """What runs on the CPU, or not at all."""
        return self.fallback | self.missing

    @property
    def remaining(self) -> frozenset[str]:
        """What does so after `import mpsmith.kernels`."""
        return self.lacking - self.replaced


def standing(
    called: Iterable[Called], on: ReleaseCoverage, recorded: ReleaseCoverage, kernels: Collection[str]
) -> Standing:
    """How what was called stands on a release.

    `recorded`: the coverage of the torch that ran. `kernels`: the operators that have a finished kernel.
    """
    by: dict[str, set[str]] = {name: set() for name in ("native", "composite", "fallback", "missing", "unknown")}
    for each in called:
        for overload in each.overloads:
            if overload.startswith(_NAMESPACE):  # releases are known by their aten
                kind = _kind(overload.removeprefix(_NAMESPACE), overload in each.composite, on, recorded)
                by[kind].add(overload)
    found = {name: frozenset(overloads) for name, overloads in by.items()}
    replaceable = kernels if release_order(on.release) >= OLDEST_WITH_KERNELS else ()
    lacking = found["fallback"] | found["missing"]
    return Standing(**found, replaced=frozenset(name for name in lacking if operator_of(name) in replaceable))


def _kind(name: str, was_composite: bool, on: ReleaseCoverage, recorded: ReleaseCoverage) -> str:
    if name not in on.by_name:
        return "unknown"
    dispatch = on.by_name[name].dispatch
    then = recorded.by_name[name].dispatch if name in recorded.by_name else None
    if dispatch.has_kernel:
        return "native"
    if was_composite and then is not None and not then.is_composite:
        return "composite"  # a structured operator without a kernel: it calls its out variant, which is judged itself
    if dispatch.is_composite:
        alike = was_composite or (then is not None and then.is_composite)
        return "composite" if alike else "unknown"  # what it is made of was not recorded
    return "fallback" if dispatch is Dispatch.ALWAYS_FALLS_BACK else "missing"


@dataclass(frozen=True)
class Since:
    """From which release on something runs without a fallback.

    Attributes:
        release: the first of an unbroken row that reaches to the newest one; None where the newest one lacks something.
        at_latest: whether it may be an older one already: the one before lacks nothing that is known, but would call
            operators that were not recorded.
    """

    release: str | None
    at_latest: bool = False

    def __str__(self) -> str:
        return f"{self.release}{' or before' if self.at_latest else ''}" if self.release else "not yet"


@dataclass(frozen=True)
class NetworkStanding:
    """One network on all releases, from the oldest to the newest.

    Attributes:
        network: its name.
        observations: what was run of it, all modes.
        by_mode: how it stands on each release, for each mode that says something of other releases than its own.
        together: likewise, these modes together.
        recorded: the known release that the recording's torch is judged as.
    """

    network: str
    observations: tuple[Observation, ...]
    by_mode: Mapping[Mode, Mapping[str, Standing]]
    together: Mapping[str, Standing]
    recorded: str


def since(by_release: Mapping[str, Standing], *, with_kernels: bool = False) -> Since:
    """From which release on nothing falls back; `with_kernels`: after `import mpsmith.kernels`."""
    first = None
    for release, found in reversed([*by_release.items()]):
        if found.remaining if with_kernels else found.lacking:
            return Since(first)
        if found.unknown:
            return Since(first, at_latest=first is not None)
        first = release
    return Since(first)


@cache
def _coverages() -> tuple[ReleaseCoverage, ...]:
    data = release_data.load()
    return tuple(from_data(data, position) for position in range(len(data.releases)))


def standings(observations: Sequence[Observation], kernels: Collection[str]) -> list[NetworkStanding]:
    """Every network that ran to its end in some mode, on every release with data, in the order of the observations.

    `kernels`: the operators that have a finished kernel.
    """
    coverages = _coverages()
    by_name = {coverage.release: coverage for coverage in coverages}
    of_network: dict[str, list[Observation]] = {}
    for observation in observations:
        of_network.setdefault(observation.network, []).append(observation)
    found = []
    for network, its in of_network.items():
        telling = [each for each in its if each.outcome is Outcome.ran and not each.mode.is_of_the_release]
        if not telling:
            continue
        facts = release_data.facts_for(telling[0].release)
        recorded = by_name[facts.release] if facts else coverages[0]

        def on_each(called: Sequence[Called], recorded: ReleaseCoverage = recorded) -> dict[str, Standing]:
            return {on.release: standing(called, on, recorded, kernels) for on in coverages}

        by_mode = {each.mode: on_each([each.called]) for each in telling}
        together = on_each([each.called for each in telling])
        found.append(NetworkStanding(network, tuple(its), by_mode, together, recorded.release))
    return found
