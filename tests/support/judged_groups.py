"""The cases of one group, judged in this process."""

from __future__ import annotations

from typing import Any

from mpsmith.audit.judging.judge import judge
from mpsmith.audit.model.case import CaseSource, make_cases
from mpsmith.audit.model.group import GroupKey
from mpsmith.audit.model.selection import Samples
from mpsmith.audit.model.verdicts import CaseVerdict
from mpsmith.simulator.device import faults
from mpsmith.simulator.fallback_recorders import CounterRecorder

from .faulty_kernels import Faulty, faulty_kernel


def wrong_cases(source: CaseSource, operator: str, dtype: str = "float32", variant: str = "") -> list[str]:
    """The titles of the cases of a group that end wrong; the group must have cases."""
    key = GroupKey(source.name, operator, variant, dtype, "fallback")
    cases = make_cases(source, key, Samples.DEFAULT, 0)
    assert cases, "a group without cases shows nothing"
    outcomes = {i: judge(case, CounterRecorder(), 0, f"{key.label}:{i}") for i, case in cases.items()}
    return [cases[i].title for i, outcome in outcomes.items() if outcome.verdict is CaseVerdict.WRONG]


def cases_that_find(source: CaseSource, operator: str, overload: str, faulty: Faulty | str, **key: Any) -> list[str]:
    """The titles of a group's cases that show a fault, in code or in words; none may be wrong without it."""
    assert wrong_cases(source, operator, **key) == []
    if not isinstance(faulty, str):
        with faulty_kernel(overload, faulty):
            return wrong_cases(source, operator, **key)
    faults.inject(faults.Fault.parse(f"aten::{overload}: {faulty}"))
    try:
        return wrong_cases(source, operator, **key)
    finally:
        faults.clear()
