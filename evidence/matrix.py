"""The device × release matrix: how each operator stands on each kind of device, and in each release by its wheel.

Simulated devices, wheels and real devices are columns of their own: what each is evidence of is not the same.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum

from ..audit.findings.overload_verdict import SEVERITY
from ..audit.verdicts import OverloadVerdict
from .devices import DeviceFamily, Findings
from .sides import side_of_release


class ColumnKind(str, Enum):
    """What a column is evidence of, the strongest first."""

    REAL_DEVICE = "real device"
    SIMULATED = "simulated"
    FROM_WHEEL = "from the wheel"


@dataclass(frozen=True)
class MatrixColumn:
    """A kind of device with a release, or a release alone; `title` is for people."""

    kind: ColumnKind
    title: str
    torch: str


@dataclass(frozen=True)
class MatrixRow:
    """One operator: its verdict in each column that has one, and whether real devices with one release disagree."""

    operator: str
    verdicts: Mapping[MatrixColumn, OverloadVerdict]

    @property
    def in_conflict(self) -> bool:
        """Whether real devices with the same torch say different things."""
        said: dict[str, set[OverloadVerdict]] = {}
        for column, verdict in self.verdicts.items():
            if column.kind is ColumnKind.REAL_DEVICE:
                said.setdefault(column.torch, set()).add(verdict)
        return any(len(verdicts) > 1 for verdicts in said.values())


def matrix(findings: Findings, releases: Sequence[str] = ()) -> tuple[tuple[MatrixColumn, ...], tuple[MatrixRow, ...]]:
    """The columns, real devices first, and a row for each operator that evidence or a release has, by name.

    Args:
        findings: what `devices.findings_by_device` gives.
        releases: of torch, each a column of what its wheel declares.
    """
    cells: dict[str, dict[MatrixColumn, OverloadVerdict]] = {}
    columns: list[MatrixColumn] = []
    for column, operators in [*_of_devices(findings), *_of_releases(releases)]:
        columns.append(column)
        for operator, verdict in operators.items():
            cells.setdefault(operator, {})[column] = verdict
    order = list(ColumnKind)
    columns.sort(key=lambda column: order.index(column.kind))
    return tuple(columns), tuple(MatrixRow(operator, cells[operator]) for operator in sorted(cells))


def _of_devices(findings: Findings) -> Iterator[tuple[MatrixColumn, dict[str, OverloadVerdict]]]:
    for kind, operators in findings.items():
        yield _column(kind), {operator: finding.verdict for operator, finding in operators.items()}


def _column(kind: DeviceFamily) -> MatrixColumn:
    grade = ColumnKind.SIMULATED if kind.simulated else ColumnKind.REAL_DEVICE
    return MatrixColumn(grade, str(kind), kind.torch)


def _of_releases(releases: Iterable[str]) -> Iterator[tuple[MatrixColumn, dict[str, OverloadVerdict]]]:
    """Of each operator the worst of its overloads, as the wheel declares them."""
    for release in releases:
        operators: dict[str, OverloadVerdict] = {}
        for overload, standing in side_of_release(release).overloads.items():
            name = overload.partition(".")[0]
            known = operators.get(name, standing.verdict)
            operators[name] = min(known, standing.verdict, key=SEVERITY.index)
        yield MatrixColumn(ColumnKind.FROM_WHEEL, f"torch {release}, from the wheel", release), operators
