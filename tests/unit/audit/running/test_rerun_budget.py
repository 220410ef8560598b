"""How many wrong cases are looked into: a few of each kind, and none when a worker's time for it is spent."""

from __future__ import annotations

import pytest

from mpsmith.audit.model.group import GroupKey
from mpsmith.audit.model.verdicts import CaseVerdict, Outcome
from mpsmith.audit.running import rerun_budget
from mpsmith.audit.running.rerun_budget import AttributionBudget, CrashBudget


def wrong(message: str, stage: str = "forward") -> Outcome:
    return Outcome(CaseVerdict.WRONG, stage, message)


def test_allows_the_first_three_of_a_kind() -> None:
    budget = AttributionBudget()
    assert [budget.allows(1, wrong(f"{n} elements differ")) for n in range(5)] == [True, True, True, False, False]
    assert budget.allows(1, wrong("7 elements differ", "backward"))
    assert budget.allows(1, wrong("shape is [3], not [4]"))
    assert budget.allows(2, wrong("9 elements differ"))


def test_cases_that_launched_other_kernels_are_of_another_kind() -> None:
    budget = AttributionBudget()
    assert [budget.allows(1, wrong(f"{n} elements differ"), ["exp_dense"]) for n in range(4)] == [*[True] * 3, False]
    assert budget.allows(1, wrong("5 elements differ"), ["exp_strided"])


def test_a_budget_that_is_spent_allows_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = iter([10.0, 12.5, 20.0, 20.5])
    monkeypatch.setattr(rerun_budget.time, "process_time", lambda: next(clock))
    budget = AttributionBudget(seconds=3.0)
    with budget.spending():
        pass
    assert budget.allows(1, wrong("differs"))
    with budget.spending():
        pass
    assert not budget.allows(2, wrong("differs"))


def key(operator: str, dtype: str = "float32") -> GroupKey:
    return GroupKey("opinfo", operator, "", dtype, "fallback")


def test_reruns_two_crashes_of_an_entry_and_a_few_of_an_audit() -> None:
    budget = CrashBudget()
    asked = [key("cos", "float32"), key("cos", "float16"), key("cos", "bool"), key("sin")]
    assert [budget.allows(each, CaseVerdict.CRASH) for each in asked] == [True, True, False, True]
    assert budget.allows(key("cos"), CaseVerdict.TIMEOUT)
    assert sum(budget.allows(key(f"op{n}"), CaseVerdict.TIMEOUT) for n in range(9)) == 3
    assert sum(budget.allows(key(f"op{n}"), CaseVerdict.CRASH) for n in range(99)) == 13
