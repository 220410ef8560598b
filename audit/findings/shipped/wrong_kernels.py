"""The shipped kernels in whose cases something was wrong: what a release computes wrong, as far as the host tells.

Only cases of the grade *shipped kernel* count: there nothing else computed, so that what differs from the CPU comes
from these kernels, from the convention that launched them, or from what Apple's mathematics library does otherwise.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from ...model.verdicts import CASE_SEVERITY, CaseVerdict, Grade, UlpSensitivity, least_sensitive
from ...store.records import StoredCase
from ...store.store import Store
from ..attribution import SourceEntry


@dataclass(frozen=True)
class WrongKernel:
    """Cases of one entry and dtype that launched the same kernels and say the same but for numbers.

    Attributes:
        overload: the overload at fault, where the calls inside a case were looked at; else "".
        entry, dtype: of the cases.
        kernels: the shipped kernels that they launched.
        verdict: wrong, crash or timeout.
        cases: how many there are.
        message: what differs, in the example; with the values where it says them.
        inputs: those of the call at fault, or of the case.
        example: the case's label.
        rule: the rule that explains the example; "" where none does.
        ulp_sensitivity: the most certain of the cases that were tried, None where none was.
    """

    overload: str
    entry: str
    dtype: str
    kernels: tuple[str, ...]
    verdict: CaseVerdict
    cases: int
    message: str
    inputs: str
    example: str
    rule: str = ""
    ulp_sensitivity: UlpSensitivity | None = None


BROKEN = (CaseVerdict.CRASH, CaseVerdict.TIMEOUT, CaseVerdict.WRONG)


def wrong_kernels(store: Store, run: int, rule_of: Mapping[str, str]) -> tuple[WrongKernel, ...]:
    """What came out wrong in the cases of a run that shipped kernels alone computed, what nothing explains first.

    Args:
        store, run: the cases.
        rule_of: by label, the rule that explains a case.
    """
    found: dict[tuple[object, ...], WrongKernel] = {}
    places = ", ".join("?" * len(BROKEN))
    for case in store.cases(run, f"c.verdict IN ({places})", [verdict.value for verdict in BROKEN]):
        if case.grade is not Grade.SHIPPED_KERNEL:
            continue
        wrong = _of(case, rule_of.get(case.label, ""))
        key = (
            wrong.overload or wrong.entry,
            wrong.dtype,
            wrong.kernels,
            wrong.verdict,
            case.outcome.symptom,
            wrong.rule,
        )
        known = found.get(key)
        if known is None:
            found[key] = wrong
        else:
            shown = min(known, wrong, key=lambda each: len(each.inputs))  # the smallest says most
            ulp_sensitivity = least_sensitive((known.ulp_sensitivity, wrong.ulp_sensitivity))
            found[key] = replace(shown, cases=known.cases + 1, ulp_sensitivity=ulp_sensitivity)
    return tuple(sorted(found.values(), key=_order))


def _of(case: StoredCase, rule: str) -> WrongKernel:
    at_fault = case.at_fault
    return WrongKernel(
        overload=at_fault.overload if at_fault else "",
        entry=SourceEntry.of(case.group).name,
        dtype=case.group.dtype,
        kernels=case.kernels,
        verdict=case.outcome.verdict,
        cases=1,
        message=at_fault.message if at_fault else case.outcome.message,
        inputs=at_fault.call if at_fault else case.inputs,
        example=case.label,
        rule=rule,
        ulp_sensitivity=case.ulp_sensitivity,
    )


def _order(wrong: WrongKernel) -> tuple[bool, int, str, str, tuple[str, ...], str]:
    name = wrong.overload or wrong.entry
    return bool(wrong.rule), CASE_SEVERITY.index(wrong.verdict), name, wrong.dtype, wrong.kernels, wrong.example
