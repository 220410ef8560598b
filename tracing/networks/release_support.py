"""Which releases support the operators of a network: one recording, joined with the coverage of each release.

The recording lists the overloads that were called. The data of a macOS wheel (`mpsmith coverage`) say whether a release
has kernels for them, so no run per release is needed. If a release does not have an overload, its
replacement is unknown.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial

from ...audit.answers.compositions import compositions
from ...audit.answers.sentences import OLDEST_WITH_KERNELS
from ...audit.answers.support import ReleaseSupport, Runs, Support
from ...audit.releases import data as release_data
from ...audit.releases.coverage import ReleaseCoverage, from_data
from ...audit.releases.data import release_order
from ...audit.releases.surface.overloads import Dispatch
from ..summary import operator_of
from .observation import Called, Mode, NetworkObservation, NetworkOutcome

_NAMESPACE = "aten::"


@dataclass(frozen=True)
class OverloadSupport:
    """The called overloads by their support in one release.

    Attributes:
        native: has its own kernel.
        composite: composed of others, which are listed themselves.
        fallback: always runs on the CPU.
        missing: no kernel: NotImplementedError, or the CPU with PYTORCH_ENABLE_MPS_FALLBACK.
        unknown: absent, or composed of others that are not known.
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
        """Overloads that run on the CPU or not at all."""
        return self.fallback | self.missing

    @property
    def remaining(self) -> frozenset[str]:
        """Those left after `import mpsmith.kernels`."""
        return self.lacking - self.replaced


def support(
    called: Iterable[Called],
    on: ReleaseCoverage,
    recorded: ReleaseCoverage,
    kernels: Collection[str],
    composed: Callable[[str], Runs] = lambda _: Runs(Support.UNKNOWN, {}),
) -> OverloadSupport:
    """The support of the called overloads in a release.

    `recorded`: the coverage of the torch that ran. `kernels`: operators with a finished kernel. `composed`: how an
    overload runs in the release by its parts, for those that were not composed when they were recorded.
    """
    by: dict[str, set[str]] = {name: set() for name in ("native", "composite", "fallback", "missing", "unknown")}
    for run_calls in called:
        for overload in run_calls.overloads:
            if overload.startswith(_NAMESPACE):  # coverage data hold aten overloads only
                name = overload.removeprefix(_NAMESPACE)
                kind = _kind(name, overload in run_calls.composite, on, recorded)
                if kind == "unknown" and name in on.by_name:
                    kind, parts = _by_parts(composed(name))
                    by["missing"].update(_NAMESPACE + part for part in parts)
                by[kind].add(overload)
    overloads_by_kind = {name: frozenset(overloads) for name, overloads in by.items()}
    replaceable = kernels if release_order(on.release) >= OLDEST_WITH_KERNELS else ()
    lacking = overloads_by_kind["fallback"] | overloads_by_kind["missing"]
    return OverloadSupport(
        **overloads_by_kind, replaced=frozenset(name for name in lacking if operator_of(name) in replaceable)
    )


def _kind(name: str, was_composite: bool, on: ReleaseCoverage, recorded: ReleaseCoverage) -> str:
    if name not in on.by_name:
        return "unknown"
    dispatch = on.by_name[name].dispatch
    if dispatch is Dispatch.MISSING_EVERYWHERE and on.by_name[name].sparse:
        return "native"  # it takes sparse tensors alone
    then = recorded.by_name[name].dispatch if name in recorded.by_name else None
    if dispatch.has_kernel:
        return "native"
    if was_composite and then is not None and not then.is_composite:
        return "composite"  # a structured operator calls its out variant, which is listed itself
    if dispatch.is_composite:
        alike = was_composite or (then is not None and then.is_composite)
        return "composite" if alike else "unknown"  # the operators inside it were not recorded
    return "fallback" if dispatch is Dispatch.ALWAYS_FALLS_BACK else "missing"


def _by_parts(runs: Runs) -> tuple[str, Collection[str]]:
    """The support of an overload that the release composes, and those of its parts that have no kernel there."""
    return ("unknown" if runs.uncertain or runs.support is Support.UNKNOWN else "composite"), runs.lacking


@dataclass(frozen=True)
class Since:
    """The first release that runs something without a fallback.

    Attributes:
        release: no release from this one to the newest lacks an operator; None if the newest lacks one.
        at_latest: an older release may do so too: the one before lacks no known operator, but would call operators
            that were not recorded.
    """

    release: str | None
    at_latest: bool = False

    def __str__(self) -> str:
        return f"{self.release}{' or before' if self.at_latest else ''}" if self.release else "not yet"


@dataclass(frozen=True)
class NetworkSupport:
    """The support of one network in all releases, from the oldest to the newest.

    Attributes:
        network: its name.
        observations: its runs in all modes.
        by_mode: the support in each release, for each mode that is comparable between releases.
        together: the same for these modes together.
        recorded: the known release whose coverage the recording had.
    """

    network: str
    observations: tuple[NetworkObservation, ...]
    by_mode: Mapping[Mode, Mapping[str, OverloadSupport]]
    together: Mapping[str, OverloadSupport]
    recorded: str


def since(kernels_by_release: Mapping[str, OverloadSupport], *, with_kernels: bool = False) -> Since:
    """The first release without fallbacks; `with_kernels`: after `import mpsmith.kernels`."""
    first = None
    for release, overload_support in reversed([*kernels_by_release.items()]):
        if overload_support.remaining if with_kernels else overload_support.lacking:
            return Since(first)
        if overload_support.unknown:
            return Since(first, at_latest=first is not None)
        first = release
    return Since(first)


@cache
def _coverages() -> tuple[ReleaseCoverage, ...]:
    data = release_data.load()
    return tuple(from_data(data, position) for position in range(len(data.releases)))


def _runs(by_parts: ReleaseSupport, position: int, name: str) -> Runs:
    return by_parts.of_names([name], [], position)


def network_support(observations: Sequence[NetworkObservation], kernels: Collection[str]) -> list[NetworkSupport]:
    """The support of every network that finished in some mode, in the order of the observations.

    `kernels`: operators with a finished kernel.
    """
    coverages = _coverages()
    by_parts = ReleaseSupport(release_data.load(), compositions())
    by_name = {coverage.release: coverage for coverage in coverages}
    of_network: dict[str, list[NetworkObservation]] = {}
    for observation in observations:
        of_network.setdefault(observation.network, []).append(observation)
    supports = []
    for network, its in of_network.items():
        finished = [run for run in its if run.outcome is NetworkOutcome.ran and not run.mode.is_specific_to_release]
        if not finished:
            continue
        facts = release_data.facts_for(finished[0].release)
        recorded = by_name[facts.release] if facts else coverages[0]

        def on_each(called: Sequence[Called], recorded: ReleaseCoverage = recorded) -> dict[str, OverloadSupport]:
            return {
                on.release: support(called, on, recorded, kernels, partial(_runs, by_parts, position))
                for position, on in enumerate(coverages)
            }

        by_mode = {run.mode: on_each([run.called]) for run in finished}
        together = on_each([run.called for run in finished])
        supports.append(NetworkSupport(network, tuple(its), by_mode, together, recorded.release))
    return supports
