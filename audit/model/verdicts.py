"""The verdicts of cases and overloads, and the grades of evidence."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from enum import Enum

# Stored like the name of a prediction: nothing differs but finite values, and by so many tolerances at most.
ROUNDING = "rounding"
# Joins the names of predictions that a case fits together only.
TOGETHER = "+"


class CaseVerdict(str, Enum):
    """The verdict of one executed case."""

    PASSED = "passed"
    FALLBACK = "fallback"
    MISSING = "missing"
    WRONG = "wrong"
    DTYPE_GAP = "dtype gap"
    CRASH = "crash"
    TIMEOUT = "timeout"
    REFERENCE_FAILED = "reference failed"
    SKIPPED = "skipped"

    @property
    def executed(self) -> bool:
        """Whether the call ran on the mps device; a failed reference and a skip are not evidence."""
        return self not in (CaseVerdict.REFERENCE_FAILED, CaseVerdict.SKIPPED)


class OverloadVerdict(str, Enum):
    """The verdict of one overload, which most of its cases decide. Every overload of the surface gets exactly one."""

    NATIVE = "native"
    COMPOSITE = "composite"
    FALLBACK = "fallback"
    MISSING = "missing"
    WRONG = "wrong"
    DTYPE_GAP = "dtype gap"
    CRASH = "crash"
    TIMEOUT = "timeout"
    REFERENCE_FAILED = "reference failed"
    UNREACHABLE = "unreachable"

    @property
    def is_support(self) -> bool:
        """Whether most cases give correct results on the device itself. A fallback is not support."""
        return self in (OverloadVerdict.NATIVE, OverloadVerdict.COMPOSITE)


# From the worst finding to the mildest: one bad case outweighs any number of good ones.
CASE_SEVERITY: tuple[CaseVerdict, ...] = (
    CaseVerdict.CRASH,
    CaseVerdict.TIMEOUT,
    CaseVerdict.WRONG,
    CaseVerdict.MISSING,
    CaseVerdict.FALLBACK,
    CaseVerdict.DTYPE_GAP,
    CaseVerdict.PASSED,
    CaseVerdict.REFERENCE_FAILED,
    CaseVerdict.SKIPPED,
)


def worst(verdicts: Iterable[CaseVerdict]) -> CaseVerdict | None:
    """The most severe of `verdicts`, or None when there are none (which is never a pass)."""
    present = set(verdicts)
    return next((verdict for verdict in CASE_SEVERITY if verdict in present), None)


class Grade(str, Enum):
    """What ran when something was found, and so how much it says about a Mac; the strongest evidence first."""

    REAL_DEVICE = "real device"
    HOST_CODE = "host code"
    SHIPPED_KERNEL = "shipped kernel"
    DISPATCH_ONLY = "dispatch only"


def grade_of_device(*, simulated: bool) -> Grade:
    """The grade of results without shipped kernels or host code: on the simulated device the CPU's kernels stand in."""
    return Grade.DISPATCH_ONLY if simulated else Grade.REAL_DEVICE


def strongest(grades: Iterable[Grade | None]) -> Grade | None:
    """The strongest of `grades`, or None if there is none."""
    present = set(grades)
    return next((grade for grade in Grade if grade in present), None)


class UlpSensitivity(str, Enum):
    """Whether a wrong result of a shipped kernel depends on the last bits of Apple's math functions, which are unknown.

    The most certain value comes first.
    """

    EXACT = "exact arithmetic"
    INSENSITIVE = "not ULP-sensitive"
    SENSITIVE = "ULP-sensitive"


def least_sensitive(sensitivities: Iterable[UlpSensitivity | None]) -> UlpSensitivity | None:
    """The most certain of the values, or None if there is none."""
    present = set(sensitivities)
    return next((sensitivity for sensitivity in UlpSensitivity if sensitivity in present), None)


_NUMBER = re.compile(r"\d+(?:\.\d+)?(?:e[+-]?\d+)?")


def without_numbers(message: str) -> str:
    """The message with # for each number."""
    return _NUMBER.sub("#", message)


# What was compared of a case that the CPU refuses and the device refuses alike.
COMPARED_ERRORS = "errors"

# Begins the note of a case that passed in a group of which no result depends on an input.
WITHOUT_EFFECT = "no result of the group depends on: "


@dataclass(frozen=True)
class Outcome:
    """The result of running one case.

    Attributes:
        verdict: the case's verdict, over forward and backward.
        stage: "forward" or "backward", where the verdict was decided; "samples" if no case could be made.
        message: one line for a person: the error, or what differs. Empty if the case passed in full, except for a note
            that begins with WITHOUT_EFFECT.
        fallbacks: operators that ran on the CPU inside the call, in order of first occurrence, backward included.
        compared: "values", or why only shape, dtype and device were compared ("random", "uninitialised"), or
            COMPARED_ERRORS if both devices refuse the call.
        max_error: the largest deviation in units of the tolerance (1.0 is the limit); None if nothing was measured.
        backward: whether gradients were computed and compared.
        seconds: wall time of the case.
    """

    verdict: CaseVerdict
    stage: str = "forward"
    message: str = ""
    fallbacks: tuple[str, ...] = ()
    compared: str = "values"
    max_error: float | None = None
    backward: bool = False
    seconds: float = 0.0

    @property
    def is_refusal(self) -> bool:
        """Whether the case passed because both devices refuse the call, which shows no correct result."""
        return self.verdict is CaseVerdict.PASSED and self.compared == COMPARED_ERRORS

    @property
    def symptom(self) -> tuple[str, str]:
        """The stage and the message without numbers: equal for cases of a group with the same cause."""
        return self.stage, without_numbers(self.message)

    def with_note(self, note: str) -> Outcome:
        """The same outcome with the note, if it is not empty, appended to the message."""
        return replace(self, message="; ".join(filter(None, (self.message, note))))


@dataclass(frozen=True)
class AtFault:
    """The overload that causes a non-pass: one that the case called inside, or its own.

    Attributes:
        overload: its name in the dispatcher.
        call: a description of its arguments.
        message: what was wrong with its results.
    """

    overload: str
    call: str
    message: str
