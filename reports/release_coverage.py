"""Coverage of releases: the section of reports, and the cells that all tables of coverage share."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache

from ..audit.findings.results import AuditSummary, RegistryStatus
from ..audit.releases import data as release_data
from ..audit.releases.coverage import ReleaseCoverage, from_data
from ..audit.releases.coverage.history import ReleaseCounts, history
from ..audit.releases.coverage.table import AuditVerdicts, DtypesByStage, OperatorRow, OperatorSupport, operator_rows
from ..errors import MpsmithError
from .table import Table
from .wording import SHORT_DTYPES

OPERATOR_TITLES = (
    "operator",
    "mps",
    "native overloads",
    "native since",
    "Metal kernels",
    "upstream expects to fail",
    "drift",
    "audit",
    "status",
    "replacement",
)

HISTORY_TITLES = (
    "release",
    "native",
    "operators",
    "missing",
    "operators missing",
    "composite",
    "missing everywhere",
    "by hand",
    "fall back",
    "SparseMPS",
    "Metal functions",
    "gained",
    "lost",
)


def operator_cells(row: OperatorRow) -> tuple[str, ...]:
    """The cells of one operator, one for each of OPERATOR_TITLES. A verdict that no Mac has shown is marked."""
    return (
        row.operator,
        row.support.value,
        f"{row.native_overloads} of {row.kernel_overloads}" if row.kernel_overloads else "",
        row.native_since or "",
        _short(row.metal_dtypes),
        _expected(row.expected_failures),
        "; ".join(drift.value for drift in row.drift),
        _verdict(row),
        row.status or "",
        row.replacement or "",
    )


def history_cells(count: ReleaseCounts) -> tuple[str | int, ...]:
    """The cells of one release, one for each of HISTORY_TITLES."""
    return (
        count.release,
        count.native,
        count.native_operators,
        count.missing,
        count.missing_operators,
        count.composite,
        count.missing_everywhere,
        count.by_hand,
        count.falls_back,
        count.sparse,
        count.metal_functions,
        len(count.gained),
        len(count.lost),
    )


def _short(dtypes: Iterable[str]) -> str:
    return " ".join(SHORT_DTYPES.get(dtype, dtype) for dtype in dtypes)


def _expected(failures: DtypesByStage) -> str:
    return "; ".join(f"{stage}: {_short(dtypes)}" for stage, dtypes in failures.items())


def _verdict(row: OperatorRow) -> str:
    if row.verdict is None:
        return ""
    shown_by = [word for word in (row.measured_on if row.measured_on != "mps" else None, row.grade) if word]
    return f"{row.verdict} ({', '.join(shown_by)})" if shown_by else row.verdict


@dataclass(frozen=True)
class CoverageSection:
    """The figures of all releases, and the joined table of one release.

    Attributes:
        source: where the release was read from, as a sentence.
        history: a row for each release, the newest first.
        operators: those of the release, without composite ones, which need no kernel.
        simulated: whether some verdict was shown by no Mac; such verdicts are marked.
    """

    source: str
    history: Table
    operators: Table
    simulated: bool


def section(coverage: ReleaseCoverage, rows: Sequence[OperatorRow], counts: Sequence[ReleaseCounts]) -> CoverageSection:
    """The section of one release, with the verdicts that `rows` have."""
    public_first = sorted(rows, key=lambda row: row.operator.startswith("_"))
    return CoverageSection(
        source=f"Torch {coverage.release}: {coverage.source}",
        history=Table(
            "The figures of every release",
            HISTORY_TITLES,
            tuple(history_cells(count) for count in reversed(counts)),
            "Overloads count each by itself, operators with their in-place twin as one.",
        ),
        operators=Table(
            f"Operators in torch {coverage.release}",
            OPERATOR_TITLES,
            tuple(operator_cells(row) for row in public_first if row.support is not OperatorSupport.COMPOSITE),
            "Operators that are composed of others are left out: they need no kernel.",
            frozenset({"operator", "replacement"}),
        ),
        simulated=any(row.measured_on == "simulated" for row in rows),
    )


def section_of(summary: AuditSummary) -> CoverageSection | None:
    """The section for a report: the release whose coverage was audited, with this audit's verdicts beside it.

    None for a release that the committed data do not have.
    """
    data = release_data.load()
    try:
        position = data.index(str(summary.run.environment.get("profile") or summary.surface_release))
    except MpsmithError:
        return None
    coverage = from_data(data, position)
    verdicts = {operator.name: operator.verdict.value for operator in summary.operators}
    grades = {operator.name: operator.grade.value for operator in summary.operators if operator.grade}
    audit = AuditVerdicts(verdicts, "simulated" if summary.run.simulated else "mps", grades)
    statuses = {operator.name: operator.registered for operator in summary.operators}
    rows = [_with_registry(row, statuses) for row in operator_rows(coverage, data, audit=audit)]
    return section(coverage, rows, committed_history())


@cache
def committed_history() -> tuple[ReleaseCounts, ...]:
    """The figures of the releases in the committed data."""
    return history(release_data.load())


def _with_registry(row: OperatorRow, statuses: Mapping[str, RegistryStatus | None]) -> OperatorRow:
    registered = statuses.get(f"aten::{row.operator}") or statuses.get(f"aten::{row.operator}_")
    return replace(row, status=registered.status, replacement=registered.kernel) if registered else row
