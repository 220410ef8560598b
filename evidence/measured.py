"""What the registry records under `measured: mps`, from the evidence of real devices.

One entry of the registry has room for one measurement of real devices. It is that of the newest torch. Where devices
with that torch disagree, it is the worst of what they say, and its reason names who says what: nothing is averaged.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ..audit.findings.overload_verdict import SEVERITY
from ..audit.verdicts import OverloadVerdict
from ..registry.sync import Measurement
from .devices import DeviceFamily, Findings, OperatorFinding, findings_by_device, newest_torch
from .schema import EvidenceFile


def real_measurements(evidence: Iterable[EvidenceFile]) -> list[Measurement]:
    """One measurement for each operator that real devices ran, in the order of names; simulated evidence counts not."""
    findings = findings_by_device(each for each in evidence if not each.simulated)
    return list(_measurements(findings))


def _measurements(findings: Findings) -> Iterator[Measurement]:
    for operator in sorted({name for found in findings.values() for name in found}):
        said = newest_torch(findings, operator)
        kind, finding = min(said, key=lambda each: (SEVERITY.index(each[1].verdict), each[0]))
        if finding.verdict is OverloadVerdict.UNREACHABLE:
            continue
        yield Measurement(
            operator=operator,
            torch=kind.torch,
            device="mps",
            profile=None,
            overloads=finding.overloads,
            verdict=finding.verdict.value,
            dtypes=finding.dtypes,
            partly=finding.partly,
            reason=_reason(said, finding),
        )


def _reason(said: list[tuple[DeviceFamily, OperatorFinding]], finding: OperatorFinding) -> str | None:
    if len({each.verdict for _, each in said}) > 1:
        told = "; ".join(f"{kind.chip}, macOS {kind.macos}: {each.verdict.value}" for kind, each in said)
        return f"devices differ: {told}"
    if finding.verdict is OverloadVerdict.FALLBACK and finding.through:
        return f"through {', '.join(finding.through)}"
    return None
