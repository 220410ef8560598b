"""Finds contradictions between a status that people gave and a measurement, in either direction.

A sync only reports drift; the person who gave the status decides. The native operators of the simulated device compute
on the CPU, so a correct result there does not contradict the status "wrong".
"""

from __future__ import annotations

from dataclasses import dataclass

from .model import Device, Entry, Measured, Status, Verdict


@dataclass(frozen=True)
class StatusDrift:
    """A contradiction: the status that people gave, the verdict that was measured, and a sentence about both.

    Attributes:
        operator: the operator's name.
        recorded: the status that people gave.
        measured: the verdict of the measurement that counts.
        device: where it was measured.
        release: the release of torch whose coverage was measured.
        explanation: what contradicts and what to decide, in one line.
    """

    operator: str
    recorded: Status
    measured: Verdict
    device: Device
    release: str
    explanation: str

    def __str__(self) -> str:
        return f"{self.operator}: {self.explanation}"


_SUPPORT: frozenset[Verdict] = frozenset({"native", "composite"})
_NO_KERNEL: frozenset[Verdict] = frozenset({"missing", "fallback"})
_BROKEN: frozenset[Verdict] = frozenset({"wrong", "dtype gap", "crash", "timeout"})
_NO_EVIDENCE: Verdict = "reference failed"

# The verdicts that do not contradict a status. A fallback is seen where the operator is missing and the variable
# PYTORCH_ENABLE_MPS_FALLBACK is set, so the two agree. What is upstreamed is missing until the release that has it.
_AGREES: dict[Status, frozenset[Verdict]] = {
    Status.native: frozenset({"native"}),
    Status.composite: frozenset({"composite"}),
    Status.falls_back: _NO_KERNEL,
    Status.missing: _NO_KERNEL,
    Status.wrong: frozenset({"wrong", "crash", "timeout"}),
    Status.dtype_gap: frozenset({"dtype gap"}),
    Status.scaffolded: _NO_KERNEL | _BROKEN,
    Status.implemented: _NO_KERNEL | _BROKEN,
    Status.verified: _NO_KERNEL | _BROKEN,
    Status.upstreamed: _NO_KERNEL | _SUPPORT,
    Status.not_applicable: _NO_KERNEL | {"unreachable"},
}

_ABOUT_VALUES = (Status.wrong, Status.dtype_gap)
_REPLACED = (Status.scaffolded, Status.implemented, Status.verified)


def drift_of(entry: Entry) -> StatusDrift | None:
    """The contradiction between the entry's status and its measurement that counts; None where there is none.

    An entry without a status follows its measurement and cannot drift.
    """
    device, measured = entry.ranking_device, entry.ranking_measurement
    if entry.status is None or device is None or measured is None:
        return None
    if measured.verdict == _NO_EVIDENCE or _agrees(entry.status, measured):
        return None
    if device == "simulated" and entry.status in _ABOUT_VALUES and measured.verdict in _SUPPORT:
        return None
    explanation = f"marked {entry.status.value}, but {_finding(device, measured)}: {_advice(entry.status, measured)}"
    return StatusDrift(entry.operator, entry.status, measured.verdict, device, measured.release, explanation)


def _agrees(status: Status, measured: Measured) -> bool:
    """Whether the status fits the verdict and the cases that differ from it."""
    if measured.partly and (status is Status.wrong or status in _REPLACED):
        return True
    refuted = measured.partly and status in (Status.native, Status.composite)
    return not refuted and measured.verdict in _AGREES[status]


def _finding(device: Device, measured: Measured) -> str:
    where = "on the simulated device" if device == "simulated" else "on mps"
    partly = f", {' and '.join(measured.partly)} in some cases" if measured.partly else ""
    return f"{_IN_WORDS[measured.verdict]}{partly} {where} with the coverage of torch {measured.release}"


def _advice(status: Status, measured: Measured) -> str:
    if measured.verdict == "unreachable":
        return measured.reason or "mark it not applicable, or say how users reach it"
    if measured.verdict in _SUPPORT and not measured.partly:
        return "its kernel may no longer be needed" if status in _REPLACED else "it may be closed"
    if measured.verdict in _NO_KERNEL:
        return "it may have lost its kernel, or the status was meant for another release"
    return "look at the failing cases and review the status"


_IN_WORDS: dict[Verdict, str] = {
    "native": "native now",
    "composite": "composite now",
    "fallback": "it falls back to the CPU",
    "missing": "it has no kernel",
    "wrong": "measured wrong",
    "dtype gap": "it refuses dtypes",
    "crash": "it crashes the process",
    "timeout": "it hangs",
    "unreachable": "no user can reach it",
}
