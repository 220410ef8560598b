"""Computes the committed release data from wheels: what `python -m mpsmith.audit.releases.wheel.rebuild` does."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from .. import change_points
from ..data import ABSENT, FailureKey, OverloadHistory, ReleaseData, ReleaseFacts, release_order
from ..surface import surface_of
from ..surface.native_functions import functional_name
from ..surface.overloads import Overload, Surface
from ..surface.reachability import Unreachable
from .agreement import Discrepancy, differences
from .archive import COMMON_MPS, DERIVATIVES, NATIVE_FUNCTIONS, Archive
from .binary import BinaryEvidence, read_binary
from .expected_failures import MACOS, ExpectedFailures, read_expected_failures
from .metal_dtypes import dtypes_by_operator
from .opinfo_declarations import (
    DEFINITION_FILES,
    DEFINITIONS,
    MAIN,
    OpInfoDeclaration,
    operator_of_opinfo,
    read_opinfos,
)
from .python_kernels import read_python_kernels
from .registrations import KEYS


@dataclass(frozen=True)
class WheelReading:
    """Everything read from one wheel. `binary` and `facts` are None if only the yaml was read."""

    label: str
    surface: Surface
    binary: BinaryEvidence | None
    facts: ReleaseFacts | None
    differences: tuple[Discrepancy, ...]
    metal_dtypes: Mapping[str, tuple[str, ...]]
    opinfos: tuple[OpInfoDeclaration, ...]
    failures: ExpectedFailures | None

    @property
    def release(self) -> str:
        """The version of the wheel."""
        return self.surface.release


def read_wheel(
    archive: Archive, *, with_binary: bool = True, with_tests: bool = True, macos: float = MACOS
) -> WheelReading:
    """Read a wheel's yaml and, by default, its binary and its tests' expectations for a version of macOS.

    Raises WheelError when a part that every torch wheel has is missing or damaged. Releases before 2.8 have no
    common_mps.py: `failures` is None for them.
    """
    surface = _surface(archive, None)
    binary = read_binary(archive) if with_binary else None
    disagreements = tuple(differences(surface, binary)) if binary else ()
    facts = None
    if binary is not None:
        facts = _facts(archive, binary, disagreements)
        surface = _surface(archive, facts)
        facts = replace(facts, inherited=_inherited(surface, facts))
    opinfos: tuple[OpInfoDeclaration, ...] = ()
    failures = None
    if with_tests and archive.has(COMMON_MPS):
        opinfos = tuple(read_opinfos(_opinfo_texts(archive)))
        failures = read_expected_failures(archive.read(COMMON_MPS), opinfos, macos)
    native = [o.name.removeprefix("aten::") for o in surface.overloads if o.dispatch.has_kernel]
    return WheelReading(
        label=archive.label,
        surface=surface,
        binary=binary,
        facts=facts,
        differences=disagreements,
        metal_dtypes=dtypes_by_operator(native, binary.metal_functions()) if binary else {},
        opinfos=opinfos,
        failures=failures,
    )


def _surface(archive: Archive, facts: ReleaseFacts | None) -> Surface:
    derivatives = archive.read(DERIVATIVES) if archive.has(DERIVATIVES) else None
    declarations = archive.read(NATIVE_FUNCTIONS)
    return surface_of(declarations, derivatives, archive.identity.release, archive.label, facts)


def _facts(archive: Archive, binary: BinaryEvidence, disagreements: Sequence[Discrepancy]) -> ReleaseFacts:
    def explained_by(rule: str) -> tuple[str, ...]:
        return tuple(item.overload for item in disagreements if item.key == "MPS" and item.rule == rule)

    return ReleaseFacts(
        release=archive.identity.release,
        wheel=archive.label.rpartition("/")[2],
        minimum_macos=binary.minimum_macos,
        sdk=binary.sdk,
        registered={key: len(binary.registered(key)) for key in KEYS},
        always_falls_back=explained_by("hand-written fallback"),
        refuses=explained_by("hand-written refusal"),
        hand_written=explained_by("hand-written kernel"),
        python_kernels=_python_kernels(archive),
        unexplained=tuple(f"{item.key}: {item.overload}" for item in disagreements if item.rule is None),
        metal_functions={library.section: len(library.functions) for library in binary.libraries},
    )


def _python_kernels(archive: Archive) -> tuple[str, ...]:
    return read_python_kernels({name: archive.read(name) for name in archive.python_sources()})


def _inherited(surface: Surface, facts: ReleaseFacts) -> dict[str, str]:
    """The dispatch of overloads whose out overload is registered by hand, if it differs from the declared one."""
    by_hand = {*facts.always_falls_back, *facts.undeclared_kernels}
    differing = {o.name.removeprefix("aten::"): o.dispatch for o in surface.overloads if o.dispatch is not o.declared}
    return {name: dispatch.value for name, dispatch in differing.items() if name not in by_hand}


def _opinfo_texts(archive: Archive) -> dict[str, bytes]:
    names = [MAIN, *(f"{DEFINITIONS}{name}.py" for name in DEFINITION_FILES)]
    return {name: archive.read(name) for name in names if archive.has(name)}


def combine(readings: Iterable[WheelReading]) -> ReleaseData:
    """The release data of these wheels. Raises ValueError for one that was read without its binary."""
    ordered = sorted(readings, key=lambda reading: release_order(reading.release))
    facts = [reading.facts for reading in ordered if reading.facts is not None]
    if len(facts) != len(ordered):
        raise ValueError("the data of a release needs its binary")
    tested = [dict.fromkeys(tested_operators(reading), "yes") for reading in ordered]
    return ReleaseData(
        tuple(facts),
        combine_surfaces([reading.surface for reading in ordered]),
        _by_key([{key: ",".join(value) for key, value in reading.metal_dtypes.items()} for reading in ordered]),
        _by_key([failures_by_key(reading) for reading in ordered]),
        {operator: tuple(state == "yes" for state in states) for operator, states in _by_key(tested).items()},
    )


def combine_surfaces(surfaces: Sequence[Surface]) -> dict[str, OverloadHistory]:
    """The history of every overload; the surfaces are ordered from the oldest release to the newest."""
    steps = [surface.by_name for surface in surfaces]
    names = sorted({name for overloads in steps for name in overloads})
    return {name.removeprefix("aten::"): _history(name, [overloads.get(name) for overloads in steps]) for name in names}


def _history(name: str, steps: Sequence[Overload | None]) -> OverloadHistory:
    """The declared dispatch in each release. What hand-written C++ changes is in the facts of the release instead."""
    return OverloadHistory(
        name.removeprefix("aten::"),
        tuple(overload.declared.value if overload else ABSENT for overload in steps),
        tuple(overload is not None and overload.sparse for overload in steps),
        tuple(overload is not None and overload.sparse_compressed for overload in steps),
        tuple(_unreachable(overload) for overload in steps),
    )


def _unreachable(overload: Overload | None) -> str:
    reach = overload.reach if overload else None
    return reach.rule if isinstance(reach, Unreachable) else change_points.NOTHING


def tested_operators(reading: WheelReading) -> set[str]:
    """The functional names of the operators that have OpInfos of their name."""
    operators = _operators(reading.surface)
    return {opinfo.operator for opinfo in reading.opinfos} & operators


def failures_by_key(reading: WheelReading) -> dict[FailureKey, str]:
    """The dtypes that are expected to fail, joined by commas, or `all`. Skipped tests are not expected failures."""
    operators = _operators(reading.surface)
    collected: dict[FailureKey, set[str]] = {}
    for mark in reading.failures.marks if reading.failures else ():
        stage = "unimplemented" if mark.unimplemented else mark.stage
        if not mark.skipped and stage in ("unimplemented", "forward", "backward"):
            operator = operator_of_opinfo(mark.name)
            variant = mark.test.removeprefix(mark.name)
            key = FailureKey(mark.name, variant, stage, operator if operator in operators else change_points.NOTHING)
            collected.setdefault(key, set()).update(mark.dtypes)
    for opinfo in reading.opinfos:
        for own in opinfo.marks:
            for overload in own.operators if own.unimplemented else ():
                operator = functional_name(overload.removeprefix("aten::"))
                key = FailureKey(opinfo.name, opinfo.variant, "opinfo", operator)
                collected.setdefault(key, set()).update(own.dtypes or ("all",))
    return {key: "all" if "all" in dtypes else ",".join(sorted(dtypes)) for key, dtypes in collected.items()}


def _operators(surface: Surface) -> set[str]:
    return {functional_name(overload.name.removeprefix("aten::")) for overload in surface.overloads}


Key = TypeVar("Key", str, FailureKey)


def _by_key(tables: Sequence[Mapping[Key, str]]) -> dict[Key, tuple[str, ...]]:
    keys = {key for table in tables for key in table}
    return {key: tuple(table.get(key, change_points.NOTHING) for table in tables) for key in keys}
