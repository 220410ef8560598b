"""Computes the committed release data from wheels: what `mpsmith coverage rebuild` does."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from . import change_points
from .expected_failures import ExpectedFailures, read_expected_failures
from .opinfo_sources import DEFINITION_FILES, DEFINITIONS, MAIN, OpInfoSource, read_opinfos
from .overloads import Overload, Surface
from .release_data import ABSENT, OverloadHistory, ReleaseData, ReleaseFacts, release_order
from .surface import surface_of
from .wheel.agreement import Difference, differences
from .wheel.archive import COMMON_MPS, DERIVATIVES, NATIVE_FUNCTIONS, Archive
from .wheel.binary import BinaryEvidence, read_binary
from .wheel.metal_dtypes import dtypes_by_operator
from .wheel.registrations import KEYS


@dataclass(frozen=True)
class WheelReading:
    """Everything that one wheel says. `binary` is None where only the yaml was asked for."""

    label: str
    surface: Surface
    binary: BinaryEvidence | None
    differences: tuple[Difference, ...]
    metal_dtypes: Mapping[str, tuple[str, ...]]
    opinfos: tuple[OpInfoSource, ...]
    failures: ExpectedFailures | None

    @property
    def release(self) -> str:
        """The version of the wheel."""
        return self.surface.release

    def facts(self) -> ReleaseFacts:
        """What the wheel says of the release as a whole. Raises ValueError without a binary."""
        if self.binary is None:
            raise ValueError("the facts of a release need its binary")
        found = self.differences
        fallbacks = [item.overload for item in found if item.key == "MPS" and item.rule == "hand-written fallback"]
        refusals = [item.overload for item in found if item.key == "MPS" and item.rule == "hand-written refusal"]
        kernels = [item.overload for item in found if item.key == "MPS" and item.rule == "hand-written kernel"]
        return ReleaseFacts(
            release=self.release,
            wheel=self.label.rpartition("/")[2],
            minimum_macos=self.binary.minimum_macos,
            sdk=self.binary.sdk,
            registered={key: len(self.binary.registered(key)) for key in KEYS},
            always_falls_back=tuple(fallbacks),
            refuses=tuple(refusals),
            hand_written=tuple(kernels),
            unexplained=tuple(f"{item.key}: {item.overload}" for item in found if item.rule is None),
            metal_functions={library.section: len(library.functions) for library in self.binary.libraries},
        )


def read_wheel(archive: Archive, *, with_binary: bool = True, macos: float = 15.0) -> WheelReading:
    """Read a wheel's yaml, its tests' expectations for a version of macOS, and (unless told not to) its binary.

    Raises WheelError when a part that every torch wheel has is missing or damaged. Releases before 2.8 have no
    common_mps.py: `failures` is None for them.
    """
    release = archive.identity.release
    derivatives = archive.read(DERIVATIVES) if archive.has(DERIVATIVES) else None
    surface = surface_of(archive.read(NATIVE_FUNCTIONS), derivatives, release, archive.label)
    binary = read_binary(archive) if with_binary else None
    native = [o.name.removeprefix("aten::") for o in surface.overloads if o.declared.has_kernel]
    opinfos: tuple[OpInfoSource, ...] = ()
    failures = None
    if archive.has(COMMON_MPS):
        opinfos = tuple(read_opinfos(_opinfo_texts(archive)))
        failures = read_expected_failures(archive.read(COMMON_MPS), opinfos, macos)
    return WheelReading(
        label=archive.label,
        surface=surface,
        binary=binary,
        differences=tuple(differences(surface, binary)) if binary else (),
        metal_dtypes=dtypes_by_operator(native, binary.metal_functions()) if binary else {},
        opinfos=opinfos,
        failures=failures,
    )


def _opinfo_texts(archive: Archive) -> dict[str, bytes]:
    names = [MAIN, *(f"{DEFINITIONS}{name}.py" for name in DEFINITION_FILES)]
    return {name: archive.read(name) for name in names if archive.has(name)}


def combine(readings: Iterable[WheelReading]) -> ReleaseData:
    """The release data of these wheels, which must have been read with their binaries."""
    ordered = sorted(readings, key=lambda reading: release_order(reading.release))
    return ReleaseData(
        tuple(reading.facts() for reading in ordered),
        combine_surfaces([reading.surface for reading in ordered]),
        _by_key([{key: ",".join(value) for key, value in reading.metal_dtypes.items()} for reading in ordered]),
        _by_key([_failures_by_stage(reading) for reading in ordered]),
    )


def combine_surfaces(surfaces: Sequence[Surface]) -> dict[str, OverloadHistory]:
    """The history of every overload over surfaces given from the oldest release to the newest."""
    found = [surface.by_name for surface in surfaces]
    names = sorted({name for overloads in found for name in overloads})
    return {name.removeprefix("aten::"): _history(name, [overloads.get(name) for overloads in found]) for name in names}


def _history(name: str, steps: Sequence[Overload | None]) -> OverloadHistory:
    """The declared dispatch: what hand-written C++ changes is in the facts of the release, not in each line."""
    return OverloadHistory(
        name.removeprefix("aten::"),
        tuple(overload.declared.value if overload else ABSENT for overload in steps),
        tuple(overload is not None and overload.sparse for overload in steps),
        tuple(overload is not None and overload.sparse_compressed for overload in steps),
    )


def _failures_by_stage(reading: WheelReading) -> dict[tuple[str, str], str]:
    """Dtypes by test and stage: `unimplemented`, `forward` for other failures, `backward`, and `opinfo` marks."""
    collected: dict[tuple[str, str], set[str]] = {}
    for mark in reading.failures.marks if reading.failures else ():
        stage = "unimplemented" if mark.unimplemented else mark.stage
        if not mark.skipped and stage in ("unimplemented", "forward", "backward"):
            collected.setdefault((mark.test, stage), set()).update(mark.dtypes)
    for opinfo in reading.opinfos:
        for own in opinfo.marks:
            if own.unimplemented:
                collected.setdefault((opinfo.test, "opinfo"), set()).update(own.dtypes or ("all",))
    return {key: "all" if "all" in dtypes else ",".join(sorted(dtypes)) for key, dtypes in collected.items()}


Key = TypeVar("Key", str, tuple[str, str])


def _by_key(tables: Sequence[Mapping[Key, str]]) -> dict[Key, tuple[str, ...]]:
    keys = {key for table in tables for key in table}
    return {key: tuple(table.get(key, change_points.NOTHING) for table in tables) for key in keys}
