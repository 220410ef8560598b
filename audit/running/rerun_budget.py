"""Limits how many failed cases are run again to find the inner call at fault."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from ..model.group import GroupKey
from ..model.verdicts import CaseVerdict, Grade, Outcome
from ..store.store import Store

# Of the cases of a group with the same symptom, only the first few are run again.
MOST_OF_A_SYMPTOM = 3
# A rerun of a crashed case ends another worker: limits for an entry and a verdict, and for an audit. The rerun of a
# time-out takes as long as the time-out.
MOST_CRASHES_OF_AN_ENTRY = 2
MOST_CRASHES = {CaseVerdict.CRASH: 16, CaseVerdict.TIMEOUT: 4}


class SymptomRerunLimit:
    """Limits the reruns of one group to the first cases with each symptom, whichever worker runs them.

    With a limit in time, two audits of the same release could attribute a failure to different calls.
    """

    def __init__(self) -> None:
        self._seen: Counter[tuple[object, ...]] = Counter()

    def allows(self, outcome: Outcome, kernels: Sequence[str] = ()) -> bool:
        """Whether to run this case again, which is then counted. Each set of `kernels` has a separate limit."""
        symptom = (outcome.symptom, *kernels)
        self._seen[symptom] += 1
        return self._seen[symptom] <= MOST_OF_A_SYMPTOM


def rerun_limits_of_group(store: Store, group: int) -> tuple[SymptomRerunLimit, SymptomRerunLimit]:
    """The limits of a group for reruns that find the inner call at fault, and for those that change results by an ULP.

    Recorded cases count: a worker that continues a group reruns no more than one that began it.
    """
    inner_call_reruns, ulp_reruns = SymptomRerunLimit(), SymptomRerunLimit()
    for case in store.cases_of_group(group) if store.positions(group) else ():
        if case.outcome.verdict is not CaseVerdict.PASSED:
            inner_call_reruns.allows(case.outcome)
            if case.grade is Grade.SHIPPED_KERNEL:
                ulp_reruns.allows(case.outcome, case.kernels)
    return inner_call_reruns, ulp_reruns


class CrashBudget:
    """Limits the reruns of crashed cases in an audit."""

    def __init__(self) -> None:
        self._of_entry: Counter[tuple[str, str, str, CaseVerdict]] = Counter()
        self._of_verdict: Counter[CaseVerdict] = Counter()

    def allows(self, key: GroupKey, verdict: CaseVerdict) -> bool:
        """Whether to run a crashed case of this group again, which is then counted."""
        entry = (key.source, key.operator, key.variant, verdict)
        if self._of_verdict[verdict] >= MOST_CRASHES[verdict] or self._of_entry[entry] >= MOST_CRASHES_OF_AN_ENTRY:
            return False
        self._of_entry[entry] += 1
        self._of_verdict[verdict] += 1
        return True
