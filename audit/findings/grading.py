"""Which grade the evidence about overloads and entries has: what ran in the cases that count for them.

The strongest grade of any executed case is that of the evidence, and the number of cases of each grade stands beside
it: a case says what it says of the very kernel that ran in it, however many others were of a weaker grade.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable

from ..verdicts import Grade, strongest
from .attribution import SourceEntry
from .store import CaseCount


class Grading:
    """The grades of one run's evidence.

    Args:
        counts: the cases of the run by group, verdict and grade.
        of_device: the grade of what the run's device shows by itself.

    Attributes:
        cases: all executed cases by grade, the strongest first.
    """

    def __init__(self, counts: Iterable[CaseCount], of_device: Grade) -> None:
        self._of_device = of_device
        self._by_entry: defaultdict[SourceEntry, set[Grade]] = defaultdict(set)
        self._by_name: defaultdict[str, set[Grade]] = defaultdict(set)
        together: Counter[Grade] = Counter()
        for count in counts:
            if count.verdict.executed:
                entry = SourceEntry.of(count.group)
                self._by_entry[entry].add(count.grade)
                self._by_name[entry.name].add(count.grade)
                together[count.grade] += count.cases
        self.cases = {grade: together[grade] for grade in Grade if together[grade]}

    def of_entry(self, name: str) -> Grade | None:
        """The grade of the cases of all entries of this name; None where none was executed."""
        return strongest(self._by_name.get(name, ()))

    def of_source_entry(self, entry: SourceEntry) -> Grade | None:
        """The grade of the cases of one source's entry; None where none was executed."""
        return strongest(self._by_entry.get(entry, ()))

    def of_overload(self, overload: str, dtype: str | None = None) -> Grade:
        """The grade of the evidence about an overload that some executed case called, of one dtype or of all."""
        return self._of_device
