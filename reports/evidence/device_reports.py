"""What one kind of device showed besides the verdicts: of the newest file of each, for a page of it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from ...audit.findings.overload_verdict import BREAKAGES
from ...audit.model.verdicts import CaseVerdict
from .devices import DeviceFamily, Findings, FindingsOfDevices
from .schema import EvidenceFile, KernelRow, MachineFacts

# The cases that are listed of one device: those of the worst verdicts first.
LISTED = 500
_SHOWN = (*BREAKAGES, CaseVerdict.DTYPE_GAP)


@dataclass(frozen=True)
class FailingCase:
    """One case that failed on a device."""

    label: str
    verdict: CaseVerdict
    message: str


@dataclass(frozen=True)
class DeviceReport:
    """The newest file of one kind of device.

    Attributes:
        kind, machine: the kind, and the very machine.
        collected: when.
        samples: of its audit; complete: whether that came to its end.
        executed, cases: of its audit.
        failing: cases that crashed, hung, were wrong or have a gap, at most LISTED; the others are counted in `more`.
        kernels: what verifying and timing them showed.
    """

    kind: DeviceFamily
    machine: MachineFacts
    collected: datetime
    samples: str
    complete: bool
    executed: int
    cases: Mapping[CaseVerdict, int]
    failing: Sequence[FailingCase]
    more: int
    kernels: Sequence[KernelRow]

    @property
    def simulated(self) -> bool:
        """Whether the device was: then nothing here is evidence about a Mac."""
        return self.kind.simulated


class NewestReports:
    """Takes evidence in, one file after the other, and keeps a report of the newest of each kind of device."""

    def __init__(self) -> None:
        self._reports: dict[DeviceFamily, DeviceReport] = {}

    def add(self, evidence: EvidenceFile) -> None:
        """Take one file in."""
        kind = DeviceFamily.of(evidence)
        known = self._reports.get(kind)
        if known is None or evidence.collected >= known.collected:
            self._reports[kind] = report_of(evidence)

    def reports(self) -> list[DeviceReport]:
        """One for each kind, in the order of kinds."""
        return [self._reports[kind] for kind in sorted(self._reports)]


def report_of(evidence: EvidenceFile) -> DeviceReport:
    """What a page shows of one file."""
    audit = evidence.audit
    failing = sorted(
        (FailingCase(*case) for case in audit.failing_cases() if case[1] in _SHOWN),
        key=lambda case: (_SHOWN.index(case.verdict), case.label),
    )
    return DeviceReport(
        kind=DeviceFamily.of(evidence),
        machine=evidence.machine,
        collected=evidence.collected,
        samples=audit.samples,
        complete=audit.complete,
        executed=audit.executed,
        cases=audit.cases,
        failing=failing[:LISTED],
        more=len(failing[LISTED:]) + sum(audit.left_out.get(verdict, 0) for verdict in _SHOWN),
        kernels=evidence.kernels,
    )


@dataclass(frozen=True)
class ShownDevices:
    """All that the pages of devices show: the findings by kind of device, and the newest report of each."""

    findings: Findings = field(default_factory=dict)
    reports: Sequence[DeviceReport] = ()


def shown_devices(evidence: Iterable[EvidenceFile]) -> ShownDevices:
    """What pages show of evidence; no file is kept."""
    found, newest = FindingsOfDevices(), NewestReports()
    for each in evidence:
        found.add(each)
        newest.add(each)
    return ShownDevices(found.findings(), newest.reports())
