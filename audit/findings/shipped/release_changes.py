"""Compares the same cases through the code of several releases or trees: which wrong results are new, or fixed.

This is a regression report without a Mac, between the shipped kernels of releases, or between trees of host code. Of
shipped kernels it compares only what they alone computed: where a stand-in answered, the release is not comparable for
that case. Host code answers for all cases, also for those that it refuses.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum

from ...model.verdicts import CaseVerdict, Grade
from ...store.records import Run, StoredCase
from ...store.store import Store
from ..attribution import SourceEntry
from .wrong_kernels import FAILURES, is_wrong_by_shipped_kernels

RIGHT, STOOD_IN, NOT_RUN = "right", "stand-in", "not run"


class Change(str, Enum):
    """How a wrong result changed from the first of the releases to the last, the worst news first."""

    NEW = "new"
    UNCHANGED = "unchanged"
    FIXED = "fixed"
    UNKNOWN = "not comparable"


@dataclass(frozen=True)
class ReleaseChange:
    """Cases of one operator and dtype with the same result in each release.

    Attributes:
        change: how the wrong result changed.
        operator: the overload at fault where it is known, else the entry.
        dtype: of the cases.
        releases: each release with its result: a failing verdict, "right", "stand-in", or "not run".
        kernels: of the last release that was wrong.
        cases: how many there are.
        message, inputs, example: of the case that shows it: what differed, the inputs, its label.
        rule: the rule that explains it; "" if none does.
    """

    change: Change
    operator: str
    dtype: str
    releases: tuple[tuple[str, str], ...]
    kernels: tuple[str, ...]
    cases: int
    message: str
    inputs: str
    example: str
    rule: str = ""


def release_changes(
    runs: Sequence[tuple[Store, Run]], rules: Sequence[Mapping[str, str]] = ()
) -> tuple[ReleaseChange, ...]:
    """Compare runs of the same cases with the kernels of one release each, in the order of the releases.

    Args:
        runs: with the store that holds it, the oldest release first.
        rules: for each run, by label, the rule that explains a case.
    """
    wrong = [_wrong_cases(store, run) for store, run in runs]
    labels = {label for of_run in wrong for label in of_run}
    results = [_results(store, run, labels) for store, run in runs]
    names = [run.audited_code for _, run in runs]
    groups: dict[tuple[object, ...], ReleaseChange] = {}
    for label in sorted(labels):
        of_case = [of_run.get(label, NOT_RUN) for of_run in results]
        last = max(index for index, of_run in enumerate(wrong) if label in of_run)
        rule = rules[last].get(label, "") if rules else ""
        change = _change(wrong[last][label], tuple(zip(names, of_case, strict=True)), rule)
        key = (change.change, change.operator, change.dtype, change.releases, change.kernels, change.rule)
        before = groups.get(key)
        if before is not None:
            shown = min(before, change, key=lambda group: len(group.inputs))
            change = replace(shown, cases=before.cases + 1)
        groups[key] = change
    order = list(Change)
    return tuple(
        sorted(groups.values(), key=lambda c: (bool(c.rule), order.index(c.change), c.operator, c.dtype, c.example))
    )


def _change(case: StoredCase, releases: tuple[tuple[str, str], ...], rule: str) -> ReleaseChange:
    return ReleaseChange(
        change=_kind([result for _, result in releases]),
        operator=case.at_fault.overload if case.at_fault else SourceEntry.of(case.group).name,
        dtype=case.group.dtype,
        releases=releases,
        kernels=case.kernels,
        cases=1,
        message=case.fault_message,
        inputs=case.fault_inputs,
        example=case.label,
        rule=rule,
    )


def _kind(results: Sequence[str]) -> Change:
    comparable = [result for result in results if result not in (STOOD_IN, NOT_RUN)]
    if len(comparable) < 2 or results[-1] in (STOOD_IN, NOT_RUN):
        return Change.UNKNOWN
    if comparable[-1] == RIGHT:
        return Change.FIXED
    return Change.NEW if RIGHT in comparable else Change.UNCHANGED


def _wrong_cases(store: Store, run: Run) -> dict[str, StoredCase]:
    placeholders = ", ".join("?" * len(FAILURES))
    cases = store.cases(run.id, f"c.verdict IN ({placeholders})", [verdict.value for verdict in FAILURES])
    return {case.label: case for case in cases if _answers_for_all(run) or is_wrong_by_shipped_kernels(case)}


def _results(store: Store, run: Run, labels: set[str]) -> dict[str, str]:
    """The result of the release in each of these cases."""
    cases = store.cases(run.id) if labels else ()
    comparable = _answers_for_all(run)
    return {case.label: _result(case, comparable) for case in cases if case.label in labels}


def _answers_for_all(run: Run) -> bool:
    return "host_code" in run.environment


def _result(case: StoredCase, comparable: bool) -> str:
    verdict = case.outcome.verdict
    if not verdict.executed or not (comparable or case.grade is Grade.SHIPPED_KERNEL):
        return STOOD_IN if verdict.executed else NOT_RUN
    return RIGHT if verdict is CaseVerdict.PASSED else verdict.value
