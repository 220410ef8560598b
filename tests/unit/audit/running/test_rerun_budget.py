"""How many wrong cases are looked into: the first few of each kind in a group."""

from __future__ import annotations

from pathlib import Path

from mpsmith.audit.model.group import GroupKey
from mpsmith.audit.model.verdicts import CaseVerdict, Grade, Outcome
from mpsmith.audit.running.rerun_budget import CrashBudget, SymptomRerunLimit, rerun_limits_of_group
from support.stores import begun, new_store


def wrong(message: str, stage: str = "forward") -> Outcome:
    return Outcome(CaseVerdict.WRONG, stage, message)


def test_allows_the_first_three_of_a_kind() -> None:
    limit = SymptomRerunLimit()
    assert [limit.allows(wrong(f"{n} elements differ")) for n in range(5)] == [True, True, True, False, False]
    assert limit.allows(wrong("7 elements differ", "backward"))
    assert limit.allows(wrong("shape is [3], not [4]"))


def test_cases_that_launched_other_kernels_are_of_another_kind() -> None:
    limit = SymptomRerunLimit()
    assert [limit.allows(wrong(f"{n} elements differ"), ["exp_dense"]) for n in range(4)] == [*[True] * 3, False]
    assert limit.allows(wrong("5 elements differ"), ["exp_strided"])


def test_a_worker_counts_the_reruns_of_the_worker_before(tmp_path: Path) -> None:
    with new_store(tmp_path) as store:
        recording = begun(store)
        for operator in ("exp", "cos"):
            recording.add(key(operator))
        exp, cos = (group.id for group in store.groups(recording.run.id))
        store.add_case(exp, 0, Outcome(CaseVerdict.PASSED), "")
        store.add_case(exp, 1, wrong("1 elements differ"), "", Grade.SHIPPED_KERNEL)
        store.add_case_kernels(exp, 1, ["exp_dense"])
        store.add_case(exp, 2, wrong("2 elements differ"), "")
        inner_call_reruns, ulp_reruns = rerun_limits_of_group(store, exp)
        assert [inner_call_reruns.allows(wrong(f"{n} elements differ")) for n in (3, 4)] == [True, False]
        allowed = [ulp_reruns.allows(wrong(f"{n} elements differ"), ["exp_dense"]) for n in (3, 4, 5)]
        assert allowed == [True, True, False]
        inner_call_reruns, _ = rerun_limits_of_group(store, cos)
        assert sum(inner_call_reruns.allows(wrong("1 elements differ")) for _ in range(9)) == 3


def key(operator: str, dtype: str = "float32") -> GroupKey:
    return GroupKey("opinfo", operator, "", dtype, "fallback")


def test_reruns_two_crashes_of_an_entry_and_a_few_of_an_audit() -> None:
    budget = CrashBudget()
    asked = [key("cos", "float32"), key("cos", "float16"), key("cos", "bool"), key("sin")]
    assert [budget.allows(group, CaseVerdict.CRASH) for group in asked] == [True, True, False, True]
    assert budget.allows(key("cos"), CaseVerdict.TIMEOUT)
    assert sum(budget.allows(key(f"op{n}"), CaseVerdict.TIMEOUT) for n in range(9)) == 3
    assert sum(budget.allows(key(f"op{n}"), CaseVerdict.CRASH) for n in range(99)) == 13
