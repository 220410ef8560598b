"""What the tables of coverage say, cell by cell: the same words in the terminal, in files and on the page."""

from __future__ import annotations

from collections.abc import Iterable

from ..audit.releases.coverage.history import ReleaseCounts
from ..audit.releases.coverage.table import DtypesByStage, OperatorRow
from .tables import SHORT_DTYPES

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
    """The cells of one operator, one for each of OPERATOR_TITLES. A verdict that no Mac has shown says so."""
    return (
        row.operator,
        row.standing.value,
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
