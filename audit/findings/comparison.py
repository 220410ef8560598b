"""What differs between two audits, case by case: the same code gives none, another release or a mend gives a few."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from ..group import GroupKey
from ..verdicts import CaseVerdict
from .store import Run, Store

CaseKey = tuple[GroupKey, int]


@dataclass(frozen=True)
class CaseDifference:
    """One case of which two audits say different things.

    Attributes:
        label: the case's lasting name, as `mpsmith replay` takes it.
        before, after: the verdicts; None where an audit has no such case.
        inputs_differ: the position holds a case with other inputs, so that the two verdicts are of different calls.
    """

    label: str
    before: CaseVerdict | None
    after: CaseVerdict | None
    inputs_differ: bool = False

    @property
    def kind(self) -> str:
        """What happened to the case, for people: "only before", "only after", "other inputs", "passed -> wrong"."""
        if self.after is None:
            return "only before"
        if self.before is None:
            return "only after"
        change = f"{self.before.value} -> {self.after.value}"
        return f"other inputs, {change}" if self.inputs_differ else change


@dataclass
class RunComparison:
    """Two audits side by side.

    Attributes:
        before, after: how many cases each recorded.
        same: cases in both with the same inputs and the same verdict.
        differences: all others, in the order of the first audit, then those that only the second has.
    """

    before: int = 0
    after: int = 0
    same: int = 0
    differences: list[CaseDifference] = field(default_factory=list)

    @property
    def by_kind(self) -> Counter[str]:
        """The differences counted by what happened."""
        return Counter(difference.kind for difference in self.differences)


def compare_runs(before: tuple[Store, Run], after: tuple[Store, Run]) -> RunComparison:
    """Compare what two audits recorded of every case; a case is known by its group and position.

    Cases that differ in their inputs are differences too, whatever their verdicts: they are not the same case.
    """
    old, new = _verdicts(*before), _verdicts(*after)
    comparison = RunComparison(len(old), len(new))
    for key, (verdict, inputs) in old.items():
        other = new.get(key)
        if other is None:
            comparison.differences.append(CaseDifference(_label(key), verdict, None))
        elif other == (verdict, inputs):
            comparison.same += 1
        else:
            comparison.differences.append(CaseDifference(_label(key), verdict, other[0], inputs != other[1]))
    comparison.differences += [
        CaseDifference(_label(key), None, verdict) for key, (verdict, _) in new.items() if key not in old
    ]
    return comparison


def _verdicts(store: Store, run: Run) -> dict[CaseKey, tuple[CaseVerdict, str]]:
    return {(case.group, case.position): (case.outcome.verdict, case.inputs) for case in store.cases(run.id)}


def _label(key: CaseKey) -> str:
    group, position = key
    return group.label_of(position)
