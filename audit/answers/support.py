"""Whether the overloads of an operator run on mps in a release: by their kernels, and by those of their parts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from enum import Enum

from ..releases.change_points import NOTHING
from ..releases.data import ABSENT, ReleaseData
from ..releases.surface.overloads import Dispatch
from .compositions import NO_PARTS, Composition

_LACKING = (Dispatch.MISSING, Dispatch.ALWAYS_FALLS_BACK)
_WITHOUT_KERNEL = {dispatch.value for dispatch in (*_LACKING, Dispatch.MISSING_EVERYWHERE)}


class Support(str, Enum):
    """Whether an operator works on mps."""

    WORKS = "works"
    PARTLY = "partly"
    NO = "no"
    UNKNOWN = "not known"


@dataclass(frozen=True)
class Runs:
    """How the overloads of one name run in one release.

    Attributes:
        support: WORKS where nothing lacks a kernel, NO where every call does, PARTLY between, UNKNOWN without data.
        lacking: the overloads without a kernel that calls reach, and the share of calls that do, from 0 to 1.
        composite: some overload is composed of other operators.
        always_on_cpu: some overload is sent to the CPU by torch itself, whatever the settings.
        uncertain: the release composes some overload in a way that was not recorded.
        refusal: the error that every call raises, although there is a kernel; "" if none does.
    """

    support: Support
    lacking: Mapping[str, float]
    composite: bool = False
    always_on_cpu: bool = False
    uncertain: bool = False
    refusal: str = ""


class ReleaseSupport:
    """Answers for every release from the committed data."""

    def __init__(self, data: ReleaseData, compositions: Mapping[str, Composition]) -> None:
        self._data = data
        self._compositions = compositions

    def of_names(
        self, overloads: Iterable[str], public: Iterable[str], position: int, without_kernel: Composition = NO_PARTS
    ) -> Runs:
        """How calls of these overloads, and of these functions and modules, run in the release at a position.

        Overloads that no device has, or that users cannot reach, are left out. Whether the name is composite depends
        on its overloads, if it has any: `nn.functional.gelu` is the Python name of `aten::gelu`.

        Args:
            without_kernel: the kernels that an audit did not find. They count if no composition lacks a kernel:
                compositions have no backward, and not all calls.
        """
        main = [overload for overload in overloads if self._is_reachable(overload, position)]
        of_overloads = [self._of_overload(overload, position) for overload in main]
        runs = [run for run in of_overloads if run is not None]
        composed = [self._compositions[name] for name in public if name in self._compositions]
        of_public = [self._of_public(composition, position) for composition in composed]
        composite = any(run.composite for run in runs or of_public)
        together = replace(_combined_runs([*runs, *of_public]), composite=composite)
        return together if together.lacking else self._observed(together, without_kernel, position)

    def _observed(self, runs: Runs, without_kernel: Composition, position: int) -> Runs:
        """The same, but kernels are lacking that an audit did not find and that this release does not have either."""
        states = {part: self._data.dispatch(part, position) for part in without_kernel.parts}
        lacking = {part: without_kernel.share(part) for part, state in states.items() if state in _WITHOUT_KERNEL}
        if not lacking:
            return runs
        on_cpu = Dispatch.ALWAYS_FALLS_BACK.value in states.values()
        support = Support.NO if max(lacking.values()) == 1 else Support.PARTLY
        return replace(runs, support=support, lacking=lacking, always_on_cpu=on_cpu)

    def _of_public(self, composition: Composition, position: int) -> Runs:
        """How a function or module runs; it is not composite if it calls one overload, which has a kernel."""
        runs = self._of_parts(composition, position)
        parts = composition.computing_parts
        part = self._of_overload(parts[0], position) if len(parts) == 1 else None
        return runs if part is None else replace(runs, composite=part.composite)

    def _is_reachable(self, overload: str, position: int) -> bool:
        """Whether the release has it, and users reach it by the rules for the newest one: older yamls say less."""
        present = self._data.dispatch(overload, position) != ABSENT
        return present and self._data.overloads[overload].unreachable[-1] == NOTHING

    def _of_overload(self, overload: str, position: int, inside: frozenset[str] = frozenset()) -> Runs | None:
        state = self._data.dispatch(overload, position)
        if state in (ABSENT, Dispatch.MISSING_EVERYWHERE.value):
            return None
        dispatch = Dispatch(state)
        if dispatch.has_kernel:
            return Runs(Support.WORKS, {})
        if dispatch in _LACKING:
            return Runs(Support.NO, {overload: 1.0}, always_on_cpu=dispatch is Dispatch.ALWAYS_FALLS_BACK)
        composition = self._compositions.get(overload)
        if composition is None or overload in inside:
            return Runs(Support.UNKNOWN, {}, composite=True, uncertain=True)
        return self._of_parts(composition, position, inside | {overload})

    def _of_parts(self, composition: Composition, position: int, inside: frozenset[str] = frozenset()) -> Runs:
        """How something composed of these parts runs; `inside`: the composite overloads around it."""
        lacking: dict[str, float] = {}
        uncertain, on_cpu = False, False
        for part in composition.parts:
            share = composition.share(part)
            runs = self._of_overload(part, position, inside)
            if runs is None:
                uncertain = uncertain or self._data.dispatch(part, position) == ABSENT
                continue
            on_cpu = on_cpu or runs.always_on_cpu
            uncertain = uncertain or runs.uncertain
            for inner, of_calls in runs.lacking.items():
                lacking[inner] = max(lacking.get(inner, 0.0), share * of_calls)
        most = max(lacking.values(), default=0.0)
        support = Support.WORKS if not lacking else Support.NO if most == 1 else Support.PARTLY
        return Runs(support, lacking, composite=True, always_on_cpu=on_cpu, uncertain=uncertain)


def _combined_runs(runs: list[Runs]) -> Runs:
    """Combine how several overloads run: PARTLY where they differ."""
    if not runs:
        return Runs(Support.UNKNOWN, {})
    lacking: dict[str, float] = {}
    for run in runs:
        for part, share in run.lacking.items():
            lacking[part] = lacking.get(part, 0.0) + share / len(runs)
    decided = {run.support for run in runs} - {Support.UNKNOWN} or {Support.UNKNOWN}
    support = decided.pop() if len(decided) == 1 else Support.PARTLY
    return Runs(
        support,
        lacking,
        composite=any(run.composite for run in runs),
        always_on_cpu=any(run.always_on_cpu for run in runs),
        uncertain=any(run.uncertain for run in runs),
    )
