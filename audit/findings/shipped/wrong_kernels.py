"""The shipped kernels whose cases came out wrong: what a release computes wrong, as far as the host shows.

Only cases of the grade *shipped kernel* count. Nothing else computed in them, so a difference from the CPU comes from
these kernels, from their launch convention, or from Apple's mathematics library.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from ...model.verdicts import CASE_SEVERITY, CaseVerdict, Grade, UlpSensitivity, least_sensitive
from ...store.records import StoredCase
from ..attribution import SourceEntry

FAILURES = (CaseVerdict.CRASH, CaseVerdict.TIMEOUT, CaseVerdict.WRONG)


@dataclass(frozen=True)
class WrongKernel:
    """Cases of one entry and dtype that launched the same kernels and have the same symptom.

    Attributes:
        overload: the overload at fault, where the inner calls of a case were audited; else "".
        entry, dtype: of the cases.
        kernels: the shipped kernels that they launched.
        verdict: wrong, crash or timeout.
        cases: how many there are.
        message: what differs in the example, with the values if it names them.
        inputs: those of the call at fault, or of the case.
        example: the case's label.
        rule: the rule that explains the example; "" if none does.
        ulp_sensitivity: the most certain of the cases that were tried, None if none was.
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


def is_wrong_by_shipped_kernels(case: StoredCase) -> bool:
    """Whether only shipped kernels computed a case, and it failed."""
    return case.grade is Grade.SHIPPED_KERNEL and case.outcome.verdict in FAILURES


def wrong_kernels(cases: Iterable[StoredCase], rule_of: Mapping[str, str]) -> tuple[WrongKernel, ...]:
    """Group the failing cases that only shipped kernels computed; those without a rule come first.

    Args:
        cases: of a run.
        rule_of: by label, the rule that explains a case.
    """
    groups: dict[tuple[object, ...], WrongKernel] = {}
    for case in filter(is_wrong_by_shipped_kernels, cases):
        rule = rule_of.get(case.label, "")
        wrong = _wrong_kernel(case, rule)
        name = wrong.overload or wrong.entry
        key = (name, wrong.dtype, wrong.kernels, wrong.verdict, case.outcome.symptom, rule)
        before = groups.get(key)
        if before is not None:
            shown = min(before, wrong, key=lambda group: len(group.inputs))  # the smallest is the clearest
            sensitivity = least_sensitive((before.ulp_sensitivity, wrong.ulp_sensitivity))
            wrong = replace(shown, cases=before.cases + 1, ulp_sensitivity=sensitivity)
        groups[key] = wrong
    return tuple(sorted(groups.values(), key=_order))


def _wrong_kernel(case: StoredCase, rule: str) -> WrongKernel:
    return WrongKernel(
        overload=case.at_fault.overload if case.at_fault else "",
        entry=SourceEntry.of(case.group).name,
        dtype=case.group.dtype,
        kernels=case.kernels,
        verdict=case.outcome.verdict,
        cases=1,
        message=case.fault_message,
        inputs=case.fault_inputs,
        example=case.label,
        rule=rule,
        ulp_sensitivity=case.ulp_sensitivity,
    )


def _order(wrong: WrongKernel) -> tuple[bool, int, str, str, tuple[str, ...], str]:
    name = wrong.overload or wrong.entry
    return bool(wrong.rule), CASE_SEVERITY.index(wrong.verdict), name, wrong.dtype, wrong.kernels, wrong.example
