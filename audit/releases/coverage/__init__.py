"""The coverage of one release, overload by overload, from both its yaml and its binary."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property

from .. import change_points
from ..data import ABSENT, FailureKey, ReleaseData, ReleaseFacts
from ..surface.native_functions import functional_name
from ..surface.overloads import Dispatch
from ..surface.reachability import Unreachable
from ..wheel.agreement import RULES_BY_NAME
from ..wheel.build import WheelReading, failures_by_key, tested_operators
from ..wheel.registrations import Kind

NOT_READ = "not read"
NOTHING = "nothing"
PYTHON_KERNEL = "Python kernel"


@dataclass(frozen=True)
class OverloadCoverage:
    """One overload (without namespace) in one release.

    `dispatch` is what a user gets, `declared` what the yaml says. `registered` is what the binary registers under
    MPS for this name: a value of Kind, `nothing`, or `not read`. `rule` explains a difference between them.
    `unreachable` is the rule by which no user can call it.
    """

    name: str
    dispatch: Dispatch
    declared: Dispatch
    registered: str
    sparse: bool
    sparse_compressed: bool
    rule: str | None = None
    unreachable: str | None = None

    @property
    def explanation(self) -> str:
        """Why the dispatch differs from the yaml; "" if it does not."""
        if self.rule == PYTHON_KERNEL:
            return "torch registers a kernel for it from Python when it is imported"
        return RULES_BY_NAME[self.rule].explanation if self.rule else ""


@dataclass(frozen=True)
class ReleaseCoverage:
    """The coverage of a release. `source` says what it was read from; `facts` is None if no binary was read.

    `metal_dtypes` is by operator; `failures` as in ReleaseData, for this release alone; `tested` has the operators
    with OpInfos of their name.
    """

    release: str
    source: str
    overloads: tuple[OverloadCoverage, ...]
    facts: ReleaseFacts | None
    metal_dtypes: Mapping[str, tuple[str, ...]]
    failures: Mapping[FailureKey, str]
    tested: frozenset[str]

    @cached_property
    def by_name(self) -> Mapping[str, OverloadCoverage]:
        """The overloads by name without namespace."""
        return {overload.name: overload for overload in self.overloads}

    @cached_property
    def by_operator(self) -> Mapping[str, tuple[OverloadCoverage, ...]]:
        """The overloads by functional name: `add` includes those of `add_`."""
        grouped: dict[str, list[OverloadCoverage]] = {}
        for overload in self.overloads:
            grouped.setdefault(functional_name(overload.name), []).append(overload)
        return {operator: tuple(overloads) for operator, overloads in grouped.items()}


def from_data(data: ReleaseData, position: int) -> ReleaseCoverage:
    """The coverage of a committed release, without any wheel."""
    facts = data.releases[position]
    histories = [history for history in data.overloads.values() if history.dispatch[position] != ABSENT]
    declared = {history.name: Dispatch(history.dispatch[position]) for history in histories}
    return ReleaseCoverage(
        release=facts.release,
        source=f"data computed from {facts.wheel}",
        overloads=tuple(
            OverloadCoverage(
                name=history.name,
                dispatch=Dispatch(data.dispatch(history.name, position)),
                declared=declared[history.name],
                registered=_registered(history.name, declared[history.name], facts),
                sparse=history.sparse[position],
                sparse_compressed=history.sparse_compressed[position],
                rule=_rule(history.name, facts),
                unreachable=_named(history.unreachable[position]),
            )
            for history in histories
        ),
        facts=facts,
        metal_dtypes=_with_dtypes({key: states[position] for key, states in data.metal_dtypes.items()}),
        failures={key: states[position] for key, states in data.expected_failures.items() if _named(states[position])},
        tested=frozenset(operator for operator, states in data.tested.items() if states[position]),
    )


def from_wheel(reading: WheelReading) -> ReleaseCoverage:
    """The coverage that a wheel shows."""
    registered = reading.binary.registered("MPS") if reading.binary else {}
    rows = []
    for overload in reading.surface.overloads:
        name = overload.name.removeprefix("aten::")
        kind = registered[name].kind.value if name in registered else NOTHING
        reach = overload.reach
        rows.append(
            OverloadCoverage(
                name=name,
                dispatch=overload.dispatch,
                declared=overload.declared,
                registered=kind if reading.binary else NOT_READ,
                sparse=overload.sparse,
                sparse_compressed=overload.sparse_compressed,
                rule=_rule(name, reading.facts),
                unreachable=reach.rule if isinstance(reach, Unreachable) else None,
            )
        )
    return ReleaseCoverage(
        release=reading.release,
        source=reading.label,
        overloads=tuple(rows),
        facts=reading.facts,
        metal_dtypes=reading.metal_dtypes,
        failures=failures_by_key(reading),
        tested=frozenset(tested_operators(reading)),
    )


_BY_HAND = (
    ("always_falls_back", Kind.FALLBACK, "hand-written fallback"),
    ("refuses", Kind.REFUSAL, "hand-written refusal"),
    ("hand_written", Kind.KERNEL, "hand-written kernel"),
)


def _registered(name: str, declared: Dispatch, facts: ReleaseFacts) -> str:
    """The binary's registration; it agrees with the declaration unless the facts say otherwise."""
    for field, kind, _ in _BY_HAND:
        if name in getattr(facts, field):
            return kind.value
    return Kind.KERNEL.value if declared.has_kernel else NOTHING


def _named(rule: str) -> str | None:
    return None if rule == change_points.NOTHING else rule


def _rule(name: str, facts: ReleaseFacts | None) -> str | None:
    if facts is None:
        return None
    if name in facts.python_kernels:
        return PYTHON_KERNEL
    return next((rule for field, _, rule in _BY_HAND if name in getattr(facts, field)), None)


def _with_dtypes(states: Mapping[str, str]) -> dict[str, tuple[str, ...]]:
    return {operator: tuple(text.split(",")) for operator, text in states.items() if _named(text)}


def lacking(overloads: Iterable[OverloadCoverage]) -> list[OverloadCoverage]:
    """The reachable overloads that always fall back, or that have a kernel on the CPU but none on mps."""
    gaps = (Dispatch.MISSING, Dispatch.ALWAYS_FALLS_BACK)
    return [overload for overload in overloads if overload.dispatch in gaps and overload.unreachable is None]
