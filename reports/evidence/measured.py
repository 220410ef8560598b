"""What the registry records under `measured: mps`, from the evidence of real devices.

One entry of the registry has room for one measurement of real devices. It is that of the newest torch. Where devices
with that torch disagree, it is the worst of what they say, and its reason names who says what: nothing is averaged.
"""

from __future__ import annotations

from ...audit.findings.overload_verdict import SEVERITY
from ...audit.model.verdicts import OverloadVerdict
from ...registry.sync import Measurement
from .devices import DeviceFamily, Findings, OperatorFinding, by_newest_torch


def real_measurements(findings: Findings) -> list[Measurement]:
    """One measurement for each operator that real devices ran, in the order of names; simulated ones count not."""
    measured = []
    for operator, said in by_newest_torch(findings).items():
        kind, finding = min(said, key=lambda each: SEVERITY.index(each[1].verdict))  # the first of those as bad
        if finding.verdict is OverloadVerdict.UNREACHABLE:
            continue
        measurement = Measurement(
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
        measured.append(measurement)
    return measured


def _reason(said: list[tuple[DeviceFamily, OperatorFinding]], finding: OperatorFinding) -> str | None:
    if len({each.verdict for _, each in said}) > 1:
        told = "; ".join(f"{kind.chip}, macOS {kind.macos}: {each.verdict.value}" for kind, each in said)
        return f"devices differ: {told}"
    if finding.verdict is OverloadVerdict.FALLBACK and finding.through:
        return f"through {', '.join(finding.through)}"
    return None
