"""A page for each operator: releases by devices, with wheels, the simulated device and real devices kept apart."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from ...audit.model.verdicts import OverloadVerdict
from ...audit.releases.coverage.table import OperatorSupport
from ..charts import style_of
from ..evidence.devices import OperatorFinding
from ..evidence.matrix import ColumnKind, Matrix, MatrixColumn, OperatorRelease

_STYLES: dict[OperatorSupport, OverloadVerdict] = {
    OperatorSupport.NATIVE: OverloadVerdict.NATIVE,
    OperatorSupport.PARTLY_NATIVE: OverloadVerdict.DTYPE_GAP,
    OperatorSupport.COMPOSITE: OverloadVerdict.COMPOSITE,
    OperatorSupport.FALLS_BACK: OverloadVerdict.FALLBACK,
    OperatorSupport.MISSING: OverloadVerdict.MISSING,
    OperatorSupport.SPARSE_ONLY: OverloadVerdict.MISSING,
    OperatorSupport.MISSING_EVERYWHERE: OverloadVerdict.UNREACHABLE,
}


@dataclass(frozen=True)
class OperatorCell:
    """One cell: its words, the style of their badge, and the day on which that was found."""

    text: str
    style: str
    day: str = ""


@dataclass(frozen=True)
class ShownFinding:
    """The result of one device for the operator with one release, in words."""

    device: str
    release: str
    verdict: str
    style: str
    cases: int
    dtypes: str
    through: str
    day: str


@dataclass(frozen=True)
class OperatorContent:
    """The content of the page of one operator.

    Attributes:
        columns: the heads of the columns: the wheel, the simulated device, each real device with evidence.
        rows: a release and its cells, one a column; None if nothing is known.
        findings: what each device showed, the newest release first.
        conflicts: the releases with which real devices disagree.
        asked_real: whether a real device has evidence.
    """

    operator: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, tuple[OperatorCell | None, ...]], ...]
    findings: tuple[ShownFinding, ...]
    conflicts: tuple[str, ...]
    asked_real: bool


def contents(matrix: Matrix) -> Iterator[OperatorContent]:
    """The content of each operator's page, by name."""
    for operator in matrix.operators:
        yield _content(matrix, operator)


def _content(matrix: Matrix, operator: str) -> OperatorContent:
    releases = list(matrix.of(operator))
    asked = {column for row in releases for column in row.findings}
    columns = [c for c in matrix.columns if c in asked or c.kind is ColumnKind.FROM_WHEEL]
    return OperatorContent(
        operator=operator,
        columns=tuple(map(str, columns)),
        rows=tuple((row.release, tuple(_cell(row, column) for column in columns)) for row in releases),
        findings=tuple(
            _shown(column, row.release, row.findings[column])
            for row in releases
            for column in columns
            if column in row.findings
        ),
        conflicts=tuple(row.release for row in releases if row.in_conflict),
        asked_real=any(column.kind is ColumnKind.REAL_DEVICE for column in asked),
    )


def _cell(row: OperatorRelease, column: MatrixColumn) -> OperatorCell | None:
    if column.kind is ColumnKind.FROM_WHEEL:
        return OperatorCell(row.declared.value, style_of(_STYLES[row.declared])) if row.declared else None
    finding = row.findings.get(column)
    return OperatorCell(_in_words(finding), style_of(finding.verdict), finding.day) if finding else None


def _shown(column: MatrixColumn, release: str, finding: OperatorFinding) -> ShownFinding:
    return ShownFinding(
        device=str(column),
        release=release,
        verdict=_in_words(finding),
        style=style_of(finding.verdict),
        cases=finding.executed,
        dtypes="; ".join([_listed("", finding.dtypes), _listed("in some cases ", finding.partly)]).strip("; "),
        through=", ".join(finding.inner_fallbacks),
        day=finding.day or "this audit",
    )


def _listed(before: str, dtypes: Mapping[str, tuple[str, ...]]) -> str:
    return "; ".join(f"{before}{verdict}: {', '.join(names)}" for verdict, names in dtypes.items())


def _in_words(finding: OperatorFinding) -> str:
    beside = [name for name in finding.partly if name != finding.verdict.value]
    return f"{finding.verdict.value}, {' and '.join(beside)} in some cases" if beside else finding.verdict.value
