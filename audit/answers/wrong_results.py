"""The wrong results that are known of an operator, and the releases that give them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ...registry import found_wrong, known_wrong
from ...registry.known_case import KnownCase, TorchInput
from ...registry.torch_release import is_older

_ISSUES = "https://github.com/pytorch/pytorch/issues"


@dataclass(frozen=True)
class WrongResult:
    """A wrong result that users reported, or that mpsmith found in a shipped kernel.

    Attributes:
        summary: one sentence.
        first, last: the releases in which it was seen; "" if that is not known.
        right_from: the first release that is right again, or "".
        issue: the number in pytorch/pytorch, or 0.
        dtypes: those of the calls that show it.
        only_out: only calls with `out=` show it, which no operator makes that is composed of this one.
    """

    summary: str
    first: str = ""
    last: str = ""
    right_from: str = ""
    issue: int = 0
    dtypes: tuple[str, ...] = ()
    only_out: bool = False

    @property
    def releases(self) -> str:
        """The releases in which it was seen: `2.13.0`, `2.6.0 to 2.13.0`."""
        return self.first if self.first == self.last else f"{self.first} to {self.last}"

    @property
    def link(self) -> str:
        """The address of the upstream report, or ""."""
        return f"{_ISSUES}/{self.issue}" if self.issue else ""

    def is_in(self, release: str) -> bool | None:
        """Whether the release gives this wrong result; None if that is not known."""
        if self.right_from and not is_older(release, self.right_from):
            return False
        if not (self.first and self.last):
            return None
        return not is_older(release, self.first) and not is_older(self.last, release)


def wrong_results(operators: frozenset[str]) -> tuple[WrongResult, ...]:
    """The known wrong results of these operators (`aten::mode`), by issue; those that mpsmith found come last.

    Raises RegistryError if a file is malformed.
    """
    reported = [
        _reported(report)
        for report in known_wrong.load().values()
        if not operators.isdisjoint(_bases(report.operators))
    ]
    in_shipped_kernels = [
        WrongResult(
            report.summary, *report.wrong_in, report.right_from or "", report.issue or 0, *_shown_by([report.case])
        )
        for report in found_wrong.load().values()
        if not operators.isdisjoint(_bases(report.operators))
    ]
    return (*sorted(reported, key=lambda result: result.issue), *in_shipped_kernels)


def _bases(overloads: list[str]) -> set[str]:
    return {overload.split(".")[0].removesuffix("_") for overload in overloads}


def _reported(report: known_wrong.KnownReport) -> WrongResult:
    cause = report.cause
    first, last = report.first_affected or "", report.last_affected or ""
    if cause and cause.wrong_in:
        first, last = cause.wrong_in
    right_from = (cause.right_from if cause else None) or ""
    return WrongResult(report.summary, first, last, right_from, report.issue, *_shown_by(report.cases))


def _shown_by(cases: Sequence[KnownCase]) -> tuple[tuple[str, ...], bool]:
    """The dtypes of calls, and whether all of them have `out=`."""
    return tuple(dict.fromkeys(map(_dtype, cases))), all(case.form == "out" for case in cases)


def _dtype(case: KnownCase) -> str:
    """That of the first tensor, or of the result where the call names one and takes no tensor."""
    named = case.kwargs.get("dtype")
    return named.torch if isinstance(named, TorchInput) and not [*case.tensors()] else case.dtype
