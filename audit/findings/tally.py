"""The counts of a run, for the few lines that end an audit; the reports show the rest."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from ...simulator.upstream.host_work import HostWork
from ..model.verdicts import CASE_SEVERITY, CaseVerdict, Grade
from ..store.records import Run
from ..store.store import Store
from .run_data import RunData

_LISTED = 8


@dataclass(frozen=True)
class Tally:
    """Cases by mode and verdict, the operators that fell back, and how many samples repeat others and were left out.

    `grades`: executed cases by what ran in them; `host_work`: what kernels of host code did besides encoding commands.
    """

    run: Run
    by_mode: dict[str, Counter[CaseVerdict]]
    fallbacks: Counter[str]
    repeating: int = 0
    grades: Counter[Grade] = field(default_factory=Counter)
    host_work: Mapping[str, HostWork] = field(default_factory=dict)

    @property
    def executed(self) -> int:
        """Cases in which the mps device was asked."""
        return sum(n for counts in self.by_mode.values() for verdict, n in counts.items() if verdict.executed)

    def lines(self) -> list[str]:
        """The printed lines: one for each mode, and the operators that fell back most."""
        mark = " on the SIMULATED mps device" if self.run.simulated else ""
        mark += f" with the host code of {self.run.host_code}" if self.run.host_code else ""
        lines = [f"run {self.run.id}{mark}: {self.executed:,} cases executed"]
        for mode, counts in self.by_mode.items():
            parts = [f"{counts[verdict]:,} {verdict.value}" for verdict in reversed(CASE_SEVERITY) if counts[verdict]]
            lines.append(f"  {mode} mode: {', '.join(parts)}")
        if self.grades:
            graded = ", ".join(f"{self.grades[grade]:,} {grade.value}" for grade in Grade if self.grades[grade])
            lines.append(f"  evidence: {graded}")
        lines += [f"  {line}" for line in self._host_lines()]
        if self.repeating:
            lines.append(f"  {self.repeating:,} samples left out that repeat others (--samples full runs them)")
        if self.fallbacks:
            most = ", ".join(f"{name} ({n:,})" for name, n in self.fallbacks.most_common(5))
            operators = "1 operator" if len(self.fallbacks) == 1 else f"{len(self.fallbacks)} operators"
            lines.append(f"  {operators} on the CPU or missing; most often: {most}")
        return lines

    def _host_lines(self) -> Iterator[str]:
        """Waits and CPU work inside kernels of host code, the most calls first."""
        if not self.host_work:
            return
        graphs = sum(work.graphs for work in self.host_work.values())
        yield f"MPSGraph: {graphs:,} graphs by the stand-in, which computes with torch's CPU operators"
        inside = {name: work.computed_on_cpu for name, work in self.host_work.items() if work.computed_on_cpu}
        if inside:
            listed = (f"{name} ({', '.join(operators)})" for name, operators in sorted(inside.items()))
            yield f"native, but on the CPU inside: {_most(list(listed))}"
        lost = sorted(((work.lost, name) for name, work in self.host_work.items() if work.lost), reverse=True)
        if lost:
            yield f"results in a gathered copy of a view, which no one reads: {_most([f'{n} ({k})' for k, n in lost])}"
        waiting = sorted(
            ((work.waits / work.calls, name) for name, work in self.host_work.items() if work.waits), reverse=True
        )
        if waiting:
            yield f"waits for the GPU: {_most([f'{name} ({share:.1f} a call)' for share, name in waiting])}"


def _most(listed: list[str]) -> str:
    more = f" and {len(listed) - _LISTED} more" if len(listed) > _LISTED else ""
    return ", ".join(listed[:_LISTED]) + more


def tally(data: RunData) -> Tally:
    """Count the cases of a run."""
    by_mode: dict[str, Counter[CaseVerdict]] = {}
    grades: Counter[Grade] = Counter()
    for count in data.counts:
        by_mode.setdefault(count.group.mode, Counter())[count.verdict] += count.cases
        if count.verdict.executed:
            grades[count.grade] += count.cases
    fallbacks = Counter(name for case in data.cases for name in case.outcome.fallbacks)
    return Tally(data.run, by_mode, fallbacks, data.repeating, grades, data.host_work)


@dataclass(frozen=True)
class EntryChange:
    """How the cases of one entry ended before and after something changed."""

    operator: str
    before: Counter[CaseVerdict]
    after: Counter[CaseVerdict]


def changes(store: Store, before: Run, after: Run) -> list[EntryChange]:
    """The entries whose cases ended differently in two runs of the same cases, in fallback mode.

    In strict mode only those cases run that fell back, so there two runs need not hold the same cases.
    """
    first, second = (_by_operator(store, run) for run in (before, after))
    return [
        EntryChange(operator, first[operator], second.get(operator, Counter()))
        for operator in sorted(first)
        if first[operator] != second.get(operator)
    ]


def _by_operator(store: Store, run: Run) -> dict[str, Counter[CaseVerdict]]:
    counts: dict[str, Counter[CaseVerdict]] = {}
    for count in store.case_counts(run.id):
        if count.group.mode == "fallback":
            counts.setdefault(count.group.operator, Counter())[count.verdict] += count.cases
    return counts
