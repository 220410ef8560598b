"""From counted cases to one verdict, of an overload, of one dtype of it, or of an operator.

Two questions are asked of the cases. Is there a kernel? One case that was refused by name, or that ran on the CPU,
answers that. And does the call do what it should? A crash, a time-out or a wrong result says no for that case: the
verdict is the one of most cases, and where those are not the broken ones, the broken ones stand beside it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

from ..model.verdicts import CaseVerdict, OverloadVerdict
from ..releases.surface.overloads import Dispatch

Cases = Mapping[CaseVerdict, int]

# Of verdicts, from the worst to "nothing is known".
SEVERITY: tuple[OverloadVerdict, ...] = (
    OverloadVerdict.CRASH,
    OverloadVerdict.TIMEOUT,
    OverloadVerdict.WRONG,
    OverloadVerdict.MISSING,
    OverloadVerdict.FALLBACK,
    OverloadVerdict.DTYPE_GAP,
    OverloadVerdict.NATIVE,
    OverloadVerdict.COMPOSITE,
    OverloadVerdict.REFERENCE_FAILED,
    OverloadVerdict.UNREACHABLE,
)

# The worst first.
BREAKAGES: tuple[CaseVerdict, ...] = (CaseVerdict.CRASH, CaseVerdict.TIMEOUT, CaseVerdict.WRONG)


def verdict_of(cases: Cases, dispatch: Dispatch | None, *, works_somewhere: bool) -> OverloadVerdict:
    """The verdict of most cases in which the device was asked; see `other_breakages` for the others.

    Args:
        cases: how many had each verdict.
        dispatch: what the surface says: whether support is called native or composite.
        works_somewhere: some case of the overload, of any dtype, gave a right result.
    """
    return prevailing_breakage(cases) or kernel_verdict(cases, dispatch, works_somewhere=works_somewhere)


def prevailing_breakage(cases: Cases) -> OverloadVerdict | None:
    """Crash, time-out or wrong, the most frequent, where they are at least half of the executed cases together."""
    broken = {verdict: cases[verdict] for verdict in BREAKAGES if cases.get(verdict)}
    executed = sum(number for verdict, number in cases.items() if verdict.executed)
    if not broken or 2 * sum(broken.values()) < executed:
        return None
    return OverloadVerdict(max(broken, key=lambda verdict: broken[verdict]).value)  # the worse one of two as frequent


def kernel_verdict(cases: Cases, dispatch: Dispatch | None, *, works_somewhere: bool) -> OverloadVerdict:
    """Whether there is a kernel: one case that was refused or fell back outweighs all that passed.

    A dtype that is refused is a gap only where something else works; else all is missing.
    """
    if cases.get(CaseVerdict.MISSING):
        return OverloadVerdict.MISSING
    if cases.get(CaseVerdict.FALLBACK):
        return OverloadVerdict.FALLBACK
    if cases.get(CaseVerdict.DTYPE_GAP):
        return OverloadVerdict.DTYPE_GAP if works_somewhere else OverloadVerdict.MISSING
    if cases.get(CaseVerdict.PASSED):
        return OverloadVerdict.COMPOSITE if dispatch and dispatch.is_composite else OverloadVerdict.NATIVE
    if cases.get(CaseVerdict.REFERENCE_FAILED):
        return OverloadVerdict.REFERENCE_FAILED
    return OverloadVerdict.UNREACHABLE


def other_breakages(cases: Cases, verdict: OverloadVerdict) -> dict[CaseVerdict, int]:
    """How many cases crashed, timed out or were wrong although the verdict says something else, the worst first."""
    return {broken: cases[broken] for broken in BREAKAGES if cases.get(broken) and broken.value != verdict.value}


def works(cases: Cases) -> bool:
    """Whether some case gave a right result, on the device or on the CPU."""
    return bool(cases.get(CaseVerdict.PASSED) or cases.get(CaseVerdict.FALLBACK))


def verdict_over(
    overloads: Iterable[tuple[Cases, Dispatch | None, bool]],
) -> tuple[OverloadVerdict, tuple[CaseVerdict, ...]]:
    """The verdict over cases of several overloads, and its breakages.

    Most of all their cases decide whether the operator is broken; else the worst answer to whether there is a kernel.

    Args:
        overloads: of each its cases, what the surface says of it, and whether it works somewhere; at least one.
    """
    listed = list(overloads)
    together = listed[0][0] if len(listed) == 1 else _summed(cases for cases, _, _ in listed)
    kernels = [kernel_verdict(cases, dispatch, works_somewhere=works) for cases, dispatch, works in listed]
    verdict = prevailing_breakage(together) or min(kernels, key=SEVERITY.index)
    return verdict, tuple(other_breakages(together, verdict))


def _summed(cases: Iterable[Cases]) -> Cases:
    together: Counter[CaseVerdict] = Counter()
    for counts in cases:
        together.update(counts)
    return together


def count_verdicts(verdicts: Iterable[OverloadVerdict]) -> dict[OverloadVerdict, int]:
    """How often each verdict occurs, the worst first; those that do not occur are left out."""
    counted = Counter(verdicts)
    return {verdict: counted[verdict] for verdict in SEVERITY if counted[verdict]}
