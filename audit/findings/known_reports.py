"""The result of each known upstream report in a run: still wrong, right here, computed by the CPU, or not tried."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Set
from dataclasses import dataclass
from enum import Enum

from ...registry.known_wrong import KnownReport
from ..model.verdicts import CaseVerdict, Grade, strongest
from .attribution import SourceEntry

# The sources whose cases are those of the corpus; the second holds the cases that need very much memory.
SOURCES = ("known wrong", "large known wrong")


class ReportStatus(str, Enum):
    """The result of one report in a run: the worst of its cases.

    Dispatch only: all passed, but of one at least the CPU computed the values, so that the defect could not show.
    """

    STILL_WRONG = "still wrong"
    MISSING = "missing"
    ON_CPU = "ran on the CPU"
    DISPATCH_ONLY = "dispatch only"
    RIGHT = "right here"
    NOT_TRIED = "not tried"


STATUS_OF: dict[CaseVerdict, ReportStatus] = {
    CaseVerdict.CRASH: ReportStatus.STILL_WRONG,
    CaseVerdict.TIMEOUT: ReportStatus.STILL_WRONG,
    CaseVerdict.WRONG: ReportStatus.STILL_WRONG,
    CaseVerdict.DTYPE_GAP: ReportStatus.STILL_WRONG,
    CaseVerdict.MISSING: ReportStatus.MISSING,
    CaseVerdict.FALLBACK: ReportStatus.ON_CPU,
    CaseVerdict.PASSED: ReportStatus.RIGHT,
}


@dataclass(frozen=True)
class ReportResult:
    """One upstream report and its result in this run.

    `worst_case` is the label of the case that decided, if any; `grade` the strongest evidence of its cases.
    """

    issue: int
    url: str
    summary: str
    wrong_class: str
    overloads: tuple[str, ...]
    affected: str
    status: ReportStatus
    cases: int
    worst_case: str | None = None
    grade: Grade | None = None


def known_reports(
    reports: Iterable[KnownReport],
    cases: Mapping[SourceEntry, Mapping[CaseVerdict, int]],
    worst_cases: Mapping[tuple[SourceEntry, CaseVerdict], str],
    grades_of: Callable[[SourceEntry], Set[Grade]],
) -> tuple[ReportResult, ...]:
    """The result of each report in a run, in the order of their numbers.

    Args:
        reports: the corpus.
        cases: of each entry of the run, how many cases had each verdict, over all dtypes and both modes.
        worst_cases: the label of the case that shows an entry's verdict best.
        grades_of: the grades of an entry's executed cases.
    """
    by_issue: dict[str, list[SourceEntry]] = {}
    for entry in cases:
        if entry.source in SOURCES:
            by_issue.setdefault(entry.variant, []).append(entry)
    results = []
    for report in sorted(reports, key=lambda report: report.issue):
        entries = by_issue.get(f"#{report.issue}", [])
        counts: Counter[CaseVerdict] = Counter()
        for entry in entries:
            counts.update(cases[entry])
        verdict = next((verdict for verdict in STATUS_OF if counts[verdict]), None)
        grades = frozenset[Grade]().union(*map(grades_of, entries))
        status = STATUS_OF[verdict] if verdict else ReportStatus.NOT_TRIED
        if status is ReportStatus.RIGHT and Grade.DISPATCH_ONLY in grades:
            status = ReportStatus.DISPATCH_ONLY
        shown = [worst_cases[entry, verdict] for entry in entries if verdict and (entry, verdict) in worst_cases]
        results.append(
            ReportResult(
                issue=report.issue,
                url=report.url,
                summary=report.summary,
                wrong_class=report.wrong_class,
                overloads=tuple(report.operators),
                affected=report.affected,
                status=status,
                cases=sum(count for found_verdict, count in counts.items() if found_verdict.executed),
                worst_case=shown[0] if shown else None,
                grade=strongest(grades),
            )
        )
    return tuple(results)


def in_words(results: Iterable[ReportResult], *, simulated: bool) -> str:
    """ "Known upstream reports: 90 tried, 2 still wrong, 80 right here, 8 dispatch only"; "" without any."""
    counts = Counter(status.status for status in results)
    tried = sum(counts.values()) - counts[ReportStatus.NOT_TRIED]
    if not tried:
        return ""
    mark = " (simulated)" if simulated else ""
    parts = [f"{tried:,} tried", f"{counts[ReportStatus.STILL_WRONG]:,} still wrong{mark}"]
    parts.append(f"{counts[ReportStatus.RIGHT]:,} right here{mark}")
    others = (ReportStatus.DISPATCH_ONLY, ReportStatus.MISSING, ReportStatus.ON_CPU, ReportStatus.NOT_TRIED)
    parts += [f"{counts[status]:,} {status.value}" for status in others if counts[status]]
    return f"Known upstream reports: {', '.join(parts)}"
