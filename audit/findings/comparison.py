"""What differs between two audits, case by case: the same code gives none, another release or a mend gives a few."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from ..group import GroupKey
from ..verdicts import CaseVerdict
from .store import Run, Store


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
    old, new = (store.verdicts(run.id) for store, run in (before, after))
    comparison = RunComparison(sum(map(len, old.values())), sum(map(len, new.values())))
    for group, cases in old.items():
        others = new.get(group, {})
        if cases == others:
            comparison.same += len(cases)
            continue
        for position, (verdict, inputs) in cases.items():
            other = others.get(position)
            if other == (verdict, inputs):
                comparison.same += 1
            else:
                comparison.differences.append(_difference(group, position, (verdict, inputs), other))
    comparison.differences += [
        _difference(group, position, None, case)
        for group, cases in new.items()
        for position, case in cases.items()
        if position not in old.get(group, {})
    ]
    return comparison


def _difference(
    group: GroupKey, position: int, before: tuple[str, str] | None, after: tuple[str, str] | None
) -> CaseDifference:
    return CaseDifference(
        group.label_of(position),
        CaseVerdict(before[0]) if before else None,
        CaseVerdict(after[0]) if after else None,
        inputs_differ=before is not None and after is not None and before[1] != after[1],
    )
