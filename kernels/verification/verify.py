"""Runs the cases of a family with our kernels, judges them like an audit, and counts failures and evidence."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

import torch

from ...audit.cases.sources.layouts import LAYOUTS, Layout
from ...audit.judging.acceptance import JudgedCase, judged
from ...audit.model.case import Case, described
from ...audit.releases.surface.profiles import coverage_profile
from ...audit.running.processor_independence import without_onednn
from ...simulator.opening import device_of_this_process
from ..runtime import catalog
from ..runtime.registration import counting, registered
from .computing import require_computing
from .source import calls_of, cases_of, recorded_calls, refused_calls

SEED = 20230524


@dataclass(frozen=True)
class Failure:
    """A failed call or an uncalled kernel, and the reason."""

    what: str
    reason: str

    def __str__(self) -> str:
        return f"{self.what}: {self.reason}"


@dataclass
class FamilyResult:
    """The result of verifying one family.

    Attributes:
        family: its name.
        operators: the operators whose kernels ran in cases that passed.
        cases: how many cases were executed on mps.
        without_reference: how many more had no reference: the CPU refuses them, or they are skipped.
        failures: the cases that failed, and the kernels that no case called.
        native: the calls that were skipped because torch has native kernels for everything they call.
        checks: "numerics", and "gradients" if gradients were compared.
        dtypes: those in which one of the family's own cases passed.
    """

    family: str
    operators: set[str] = field(default_factory=set)
    cases: int = 0
    without_reference: int = 0
    failures: list[Failure] = field(default_factory=list)
    native: list[str] = field(default_factory=list)
    checks: set[str] = field(default_factory=set)
    dtypes: set[str] = field(default_factory=set)

    @property
    def passed(self) -> bool:
        """Whether some case ran and nothing failed; without a case it does not pass."""
        return self.cases > 0 and not self.failures


def verify(family: str, layouts: Sequence[Layout] = LAYOUTS) -> FamilyResult:
    """Run every case of a family with those of its kernels that the running torch lacks.

    Raises UnknownKernelError for an unknown family, and StoppedDeviceError if the device has stopped computing.
    """
    result = FamilyResult(family)
    with _one_thread(), without_onednn(), counting(*catalog.overloads(family)) as calls:
        ours = registered()
        operators = {_operator(overload) for overload in ours}
        for call in calls_of(family):
            if operators.isdisjoint(call.operators):
                result.native.append(call.label)
                continue
            for dtype in call.dtypes:
                name = str(dtype).removeprefix("torch.")
                for judged_case, answered in _answers(cases_of(call, dtype, layouts), f"{call.label}, {name}", calls):
                    if _count(result, judged_case, answered, f"{call.label}, {name}"):
                        result.dtypes.add(name)
        for key, cases in recorded_calls(family, ours):
            for judged_case, answered in _answers(cases, key.label, calls):
                if answered or not judged_case.outcome.verdict.executed:  # an override leaves some calls to torch
                    _count(result, judged_case, answered, key.label)
        if ours:
            result.failures += _not_refused(family, calls)
        if result.cases:
            idle = [overload for overload in ours if not calls[overload]]
            result.failures += [Failure(overload, "no case called its kernel") for overload in idle]
            require_computing(family)
    return result


def _not_refused(family: str, calls: Counter[str]) -> list[Failure]:
    """The failures of calls that must be refused and are not. An error is not evidence, so none is counted."""
    cases = (call.case for call in refused_calls(family))
    return [
        Failure(described(judged_case.case), judged_case.reason)
        for judged_case, _ in _answers(cases, family, calls)
        if judged_case.refused
    ]


@contextmanager
def _one_thread() -> Iterator[None]:
    """Make the CPU compute on one thread, as in the workers of an audit: threads do not pay off for small tensors."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)


def _answers(cases: Iterable[Case], label: str, calls: Counter[str]) -> Iterator[tuple[JudgedCase, frozenset[str]]]:
    """Judge each case; yield it with the overloads for which our kernels ran."""
    before = calls.copy()
    for judged_case in judged(cases, device_of_this_process(coverage_profile).recorder, SEED, label):
        yield judged_case, frozenset(calls - before)
        before = calls.copy()


def _count(result: FamilyResult, judged_case: JudgedCase, answered: frozenset[str], label: str) -> bool:
    """Add a judged case to the result. Returns whether it is evidence for the kernels."""
    if not (judged_case.accepted or judged_case.refused):
        result.without_reference += 1
        return False
    result.cases += 1
    what = f"{label}, {described(judged_case.case)}"
    if judged_case.refused:
        result.failures.append(Failure(what, judged_case.reason))
    elif not answered:
        result.failures.append(Failure(what, "none of the family's kernels was called"))
    else:
        result.operators.update(map(_operator, answered))
        result.checks.update({"numerics", "gradients"} if judged_case.outcome.backward else {"numerics"})
        return True
    return False


def _operator(overload: str) -> str:
    return overload.split(".")[0]
