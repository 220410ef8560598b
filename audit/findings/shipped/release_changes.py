"""The same cases through the shipped kernels of several releases: which wrong results are fixed, new and standing.

A regression report between releases of torch, without a Mac. Only what shipped kernels alone computed is compared: a
release whose kernels a stand-in answered for says nothing of that case.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum

from ...model.verdicts import CaseVerdict, Grade
from ...store.records import Run, StoredCase
from ...store.store import Store
from ..attribution import SourceEntry
from .wrong_kernels import BROKEN

RIGHT, STOOD_IN, NOT_RUN = "right", "stood in", "not run"


class Change(str, Enum):
    """What became of a wrong result from the first of the releases to the last, the worst news first."""

    NEW = "new"
    STANDING = "standing"
    FIXED = "fixed"
    UNKNOWN = "not comparable"


@dataclass(frozen=True)
class ReleaseChange:
    """Cases of one operator and dtype that the releases answer alike.

    Attributes:
        change: what became of the wrong result.
        operator: the overload at fault where it is known, else the entry.
        dtype: of the cases.
        releases: in the order asked for, what each did: a broken verdict, "right", "stood in", or "not run".
        kernels: of the release that was wrong last.
        cases: how many there are.
        message, inputs, example: of the case that shows it: what differed, the inputs, its label.
        rule: the rule that explains it; "" where none does.
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
    answers = [_answers(store, run, labels) for store, run in runs]
    names = [str(run.environment.get("shipped")) for _, run in runs]
    found: dict[tuple[object, ...], ReleaseChange] = {}
    for label in sorted(labels):
        words = [of_run.get(label, NOT_RUN) for of_run in answers]
        last = max(index for index, of_run in enumerate(wrong) if label in of_run)
        case = wrong[last][label]
        rule = rules[last].get(label, "") if rules else ""
        change = _change_of(case, words, tuple(zip(names, words, strict=True)), rule)
        key = (change.change, change.operator, change.dtype, change.releases, change.kernels, change.rule)
        known = found.get(key)
        shown = change if known is None else min(known, change, key=lambda each: len(each.inputs))
        found[key] = replace(shown, cases=1 if known is None else known.cases + 1)
    order = list(Change)
    return tuple(
        sorted(found.values(), key=lambda c: (bool(c.rule), order.index(c.change), c.operator, c.dtype, c.example))
    )


def _change_of(
    case: StoredCase, words: Sequence[str], releases: tuple[tuple[str, str], ...], rule: str
) -> ReleaseChange:
    at_fault = case.at_fault
    return ReleaseChange(
        change=_became(words),
        operator=at_fault.overload if at_fault else SourceEntry.of(case.group).name,
        dtype=case.group.dtype,
        releases=releases,
        kernels=case.kernels,
        cases=1,
        message=at_fault.message if at_fault else case.outcome.message,
        inputs=at_fault.call if at_fault else case.inputs,
        example=case.label,
        rule=rule,
    )


def _became(words: Sequence[str]) -> Change:
    told = [word for word in words if word not in (STOOD_IN, NOT_RUN)]
    if len(told) < 2 or words[-1] in (STOOD_IN, NOT_RUN):
        return Change.UNKNOWN
    if told[-1] == RIGHT:
        return Change.FIXED
    return Change.NEW if RIGHT in told else Change.STANDING


def _wrong_cases(store: Store, run: Run) -> dict[str, StoredCase]:
    places = ", ".join("?" * len(BROKEN))
    cases = store.cases(run.id, f"c.verdict IN ({places})", [verdict.value for verdict in BROKEN])
    return {case.label: case for case in cases if case.grade is Grade.SHIPPED_KERNEL}


def _answers(store: Store, run: Run, labels: set[str]) -> dict[str, str]:
    """What the release did in these cases."""
    answers = {}
    for case in store.cases(run.id) if labels else ():
        if case.label in labels:
            answers[case.label] = _answer(case)
    return answers


def _answer(case: StoredCase) -> str:
    verdict = case.outcome.verdict
    if case.grade is not Grade.SHIPPED_KERNEL:
        return STOOD_IN if verdict.executed else NOT_RUN
    return RIGHT if verdict is CaseVerdict.PASSED else verdict.value
