"""The device × release matrix: how each operator stands on each device with each release of torch, and in its wheel.

What a wheel declares, what the simulated device showed and what each real device showed are columns of their own: what
each is evidence of is not the same.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from operator import attrgetter

from ...audit.model.verdicts import OverloadVerdict
from ...audit.releases.coverage.table import Standing
from ...audit.releases.surface.native_functions import functional_name
from .devices import DeviceFamily, Findings, OperatorFinding, newest_first


class ColumnKind(str, Enum):
    """What a column is evidence of, the weakest first."""

    FROM_WHEEL = "from the wheel"
    SIMULATED = "simulated"
    REAL_DEVICE = "real device"


@dataclass(frozen=True)
class MatrixColumn:
    """A device, whatever torch it ran: a chip's family and a macOS, both "" where the device is no real one."""

    kind: ColumnKind
    chip: str = ""
    macos: str = ""

    @property
    def place(self) -> tuple[int, str, str]:
        """Where the column stands among others."""
        return list(ColumnKind).index(self.kind), self.chip, self.macos

    @classmethod
    def of(cls, device: DeviceFamily) -> MatrixColumn:
        """The column of a kind of device."""
        if device.simulated:
            return cls(ColumnKind.SIMULATED)
        return cls(ColumnKind.REAL_DEVICE, device.chip, device.macos)

    def __str__(self) -> str:
        if self.kind is ColumnKind.REAL_DEVICE:
            return f"{self.chip}, macOS {self.macos}"
        return "SIMULATED" if self.kind is ColumnKind.SIMULATED else self.kind.value


WHEEL = MatrixColumn(ColumnKind.FROM_WHEEL)


@dataclass(frozen=True)
class Wheels:
    """What the wheels of releases declare.

    Attributes:
        releases: oldest first.
        standings: by operator without its namespace, an in-place twin counted with it, one for each release.
    """

    releases: Sequence[str] = ()
    standings: Mapping[str, Sequence[Standing | None]] = field(default_factory=dict)

    def of(self, operator: str, release: str) -> Standing | None:
        """How the operator ("aten::mode") stands in a release; None where nothing is known."""
        row = self.standings.get(functional_name(operator.removeprefix("aten::")))
        return row[self.releases.index(release)] if row is not None and release in self.releases else None


@dataclass(frozen=True)
class OperatorRelease:
    """One operator with one release: what the wheel declares, and what each device found."""

    release: str
    declared: Standing | None
    found: Mapping[MatrixColumn, OperatorFinding]

    @property
    def in_conflict(self) -> bool:
        """Whether real devices with this release say different things."""
        return len({each.verdict for column, each in self.found.items() if column.chip}) > 1


class Matrix:
    """Operators by devices and releases.

    Attributes:
        columns: the wheels', then the simulated device's where there is one, then each real device's.
        releases: of torch, of wheels and of devices, the newest first.
        operators: those that some device was asked about, and `others`, by name.
    """

    def __init__(self, findings: Findings, wheels: Wheels, others: Iterable[str] = ()) -> None:
        self._findings = findings
        self.wheels = wheels
        self._kinds_by_release: defaultdict[str, list[DeviceFamily]] = defaultdict(list)
        for kind in findings:
            self._kinds_by_release[kind.torch].append(kind)
        self.columns: tuple[MatrixColumn, ...] = (
            WHEEL,
            *sorted({MatrixColumn.of(k) for k in findings}, key=attrgetter("place")),
        )
        self.releases: tuple[str, ...] = tuple(newest_first({*wheels.releases, *(kind.torch for kind in findings)}))
        asked = {name for found in findings.values() for name in found}
        self.operators: tuple[str, ...] = tuple(sorted({*asked, *others}))

    def of(self, operator: str) -> Iterator[OperatorRelease]:
        """What is known of an operator, the newest release first; releases of which nothing is known are left out."""
        for release in self.releases:
            found = {
                MatrixColumn.of(kind): self._findings[kind][operator]
                for kind in self._kinds_by_release.get(release, [])
                if operator in self._findings[kind]
            }
            declared = self.wheels.of(operator, release)
            if found or declared is not None:
                yield OperatorRelease(release, declared, found)

    def newest(self, operator: str) -> dict[MatrixColumn, tuple[str, OverloadVerdict]]:
        """What each device said of the operator with the newest release that it ran: that, and the verdict."""
        said: dict[MatrixColumn, tuple[str, OverloadVerdict]] = {}
        for row in self.of(operator):
            for column, finding in row.found.items():
                said.setdefault(column, (row.release, finding.verdict))
        return said
