"""The device × release matrix: the verdict of each operator on each device with each release of torch.

The declarations of wheels, the simulated device and each real device have separate columns, because they are different
kinds of evidence.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from operator import attrgetter

from ...audit.releases.coverage.table import OperatorSupport
from ...audit.releases.surface.native_functions import functional_name
from .devices import DeviceFamily, Findings, OperatorFinding, newest_first


class ColumnKind(str, Enum):
    """The kind of evidence in a column, the weakest first."""

    FROM_WHEEL = "from the wheel"
    SIMULATED = "simulated"
    REAL_DEVICE = "real device"


@dataclass(frozen=True)
class MatrixColumn:
    """A device with any torch: a chip family and a macOS release, both "" if it is not a real device."""

    kind: ColumnKind
    chip: str = ""
    macos: str = ""

    @property
    def sort_key(self) -> tuple[int, str, str]:
        """Orders columns: wheels, the simulated device, real devices."""
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
    """The declarations of the wheels of releases.

    Attributes:
        releases: oldest first.
        support: by operator without its namespace and in-place suffix, one for each release.
    """

    releases: Sequence[str] = ()
    support: Mapping[str, Sequence[OperatorSupport | None]] = field(default_factory=dict)

    def of(self, operator: str, release: str) -> OperatorSupport | None:
        """The declaration for an operator ("aten::mode") in a release; None if nothing is known."""
        row = self.support.get(functional_name(operator.removeprefix("aten::")))
        return row[self.releases.index(release)] if row is not None and release in self.releases else None


@dataclass(frozen=True)
class OperatorRelease:
    """One operator with one release: the wheel's declaration, and the finding of each device."""

    release: str
    declared: OperatorSupport | None
    findings: Mapping[MatrixColumn, OperatorFinding]

    @property
    def in_conflict(self) -> bool:
        """Whether real devices with this release disagree."""
        return len({finding.verdict for column, finding in self.findings.items() if column.chip}) > 1


class Matrix:
    """Operators by devices and releases.

    Attributes:
        columns: of the wheels, the simulated device if there is one, then each real device.
        releases: of wheels and of devices, the newest first.
        operators: those with a finding, and `others`, by name.
    """

    def __init__(self, findings: Findings, wheels: Wheels, others: Iterable[str] = ()) -> None:
        self._findings = findings
        self.wheels = wheels
        self._kinds_by_release: defaultdict[str, list[DeviceFamily]] = defaultdict(list)
        for kind in findings:
            self._kinds_by_release[kind.torch].append(kind)
        self.columns: tuple[MatrixColumn, ...] = (
            WHEEL,
            *sorted({MatrixColumn.of(k) for k in findings}, key=attrgetter("sort_key")),
        )
        self.releases: tuple[str, ...] = tuple(newest_first({*wheels.releases, *(kind.torch for kind in findings)}))
        names = {name for of_kind in findings.values() for name in of_kind}
        self.operators: tuple[str, ...] = tuple(sorted({*names, *others}))

    def of(self, operator: str) -> Iterator[OperatorRelease]:
        """The rows of an operator, the newest release first, without releases of which nothing is known."""
        for release in self.releases:
            findings = {
                MatrixColumn.of(kind): self._findings[kind][operator]
                for kind in self._kinds_by_release.get(release, [])
                if operator in self._findings[kind]
            }
            declared = self.wheels.of(operator, release)
            if findings or declared is not None:
                yield OperatorRelease(release, declared, findings)
