"""Which grade the evidence about overloads and entries has: what ran in the cases that count for them.

The strongest grade of any executed case is that of the evidence, and the number of cases of each grade is next to
it: a case says what it says of the very kernel that ran in it, however many others were of a weaker grade.

An overload with its own kernel has *shipped kernel* only where it launched one itself, and *host code* where the
host code of the run has it. What is composed of others has either grade where the user's own code called it in cases
that shipped kernels alone, or that host code, computed, unless it only gives a view.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict

from ..model.group import GroupKey
from ..model.verdicts import Grade, strongest
from ..releases.surface.overloads import Surface
from .attribution import SourceEntry
from .run_data import RunData
from .shipped.launches import GroupLaunches

# A result that is an argument's memory, unchanged: "-> Tensor(a)", "-> Tensor(a)[]".
RETURNS_A_VIEW = re.compile(r"->.*\([a-z|*]+\)")


class Grading:
    """The grades of one run's evidence.

    Args:
        data: the run.
        launches: its launches of shipped kernels.
        surface: the overloads that exist.

    Attributes:
        cases: all executed cases by grade, the strongest first.
    """

    def __init__(self, data: RunData, launches: GroupLaunches, surface: Surface) -> None:
        self._of_device = data.run.grade
        self._of_kernels = Grade.HOST_CODE if "host_code" in data.run.environment else Grade.SHIPPED_KERNEL
        self._launches = launches
        self._surface = surface
        self._by_entry: defaultdict[SourceEntry, set[Grade]] = defaultdict(set)
        self._by_name: defaultdict[str, set[Grade]] = defaultdict(set)
        self._shipped: defaultdict[str, set[str]] = defaultdict(set)
        self._host_code: defaultdict[str, set[str]] = defaultdict(set)
        together: Counter[Grade] = Counter()
        shipped: set[GroupKey] = set()
        by_host_code: set[GroupKey] = set()
        for count in data.counts:
            if count.verdict.executed:
                entry = SourceEntry.of(count.group)
                self._by_entry[entry].add(count.grade)
                self._by_name[entry.name].add(count.grade)
                together[count.grade] += count.cases
                if count.grade is Grade.SHIPPED_KERNEL:
                    shipped.add(count.group)
                elif count.grade is Grade.HOST_CODE:
                    by_host_code.add(count.group)
        for group in shipped:
            for overload, outermost in data.called_overloads.get(group, {}).items():
                if outermost and self._is_composed(overload):
                    self._shipped[overload].add(group.dtype)
        implemented = frozenset(data.run.environment.get("host_code", {}).get("overloads", ()))
        for group in by_host_code:
            called = data.called_overloads.get(group, {})
            whole = all(overload in implemented or not self._has_kernel(overload) for overload in called)
            for overload, outermost in called.items():
                if overload in implemented or (whole and outermost and self._is_composed(overload)):
                    self._host_code[overload].add(group.dtype)
        self.cases = {grade: together[grade] for grade in Grade if together[grade]}

    def of_entry(self, name: str) -> Grade | None:
        """The grade of the cases of all entries of this name; None if none was executed."""
        return strongest(self._by_name.get(name, ()))

    def of_source_entry(self, entry: SourceEntry) -> frozenset[Grade]:
        """The grades of the executed cases of one source's entry."""
        return frozenset(self._by_entry.get(entry, ()))

    def of_overload(self, overload: str, dtype: str | None = None) -> Grade:
        """The grade of the evidence about an overload that some executed case called, of one dtype or of all."""
        composed = self._shipped.get(overload, set())
        if self._launches.computed(overload, dtype) or (composed if dtype is None else dtype in composed):
            return self._of_kernels
        answered = self._host_code.get(overload, set())
        if answered if dtype is None else dtype in answered:
            return Grade.HOST_CODE
        return self._of_device

    def _has_kernel(self, overload: str) -> bool:
        listed = self._surface.by_name.get(overload)
        return listed is not None and listed.dispatch.has_kernel

    def _is_composed(self, overload: str) -> bool:
        listed = self._surface.by_name.get(overload)
        return listed is not None and listed.dispatch.is_composite and not RETURNS_A_VIEW.search(listed.schema)
