"""What real devices showed: of each kind of device the newest evidence, operator by operator, side by side.

A kind of device is a family of chips, a macOS and a release of torch. Evidence of another kind is another finding: it
is set beside, and never averaged or voted on.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from ..audit.findings.overload_verdict import SEVERITY, verdict_over, works
from ..audit.verdicts import CaseVerdict, OverloadVerdict
from ..torch_release import is_older, public_version
from .schema import EvidenceFile, OverloadRow

_CHIP = re.compile(r"Apple [A-Z]\d+")


@dataclass(frozen=True, order=True)
class DeviceFamily:
    """Devices of which one speaks for the others: "Apple M3" for M3, M3 Pro and M3 Max; "15" for macOS 15.5."""

    chip: str
    macos: str
    torch: str
    simulated: bool = False

    @classmethod
    def of(cls, evidence: EvidenceFile) -> DeviceFamily:
        """The kind of the device that made the evidence; a simulated one is named by the coverage that it had."""
        machine = evidence.machine
        if evidence.simulated:
            return cls("simulated", "", machine.profile or public_version(machine.torch), simulated=True)
        family = _CHIP.match(machine.chip)
        chip = family.group() if family else machine.chip
        return cls(chip, machine.release.partition(".")[0], public_version(machine.torch))

    def __str__(self) -> str:
        if self.simulated:
            return f"SIMULATED, torch {self.torch}"
        return f"{self.chip}, macOS {self.macos}, torch {self.torch}"


@dataclass(frozen=True)
class OperatorFinding:
    """What one kind of device showed of one operator, as the newest evidence with it says.

    Attributes:
        verdict: over all overloads.
        dtypes: of each verdict of executed cases, in the registry's words ("passed" for any support).
        partly: the dtypes in which some cases crash, time out or are wrong beside another verdict.
        overloads: how each overload dispatches.
        executed: how many cases it rests on; a case that calls several overloads counts for each.
        day: when the evidence was collected.
        through: operators inside it that fell back or are missing.
    """

    verdict: OverloadVerdict
    dtypes: Mapping[str, tuple[str, ...]]
    partly: Mapping[str, tuple[str, ...]]
    overloads: Mapping[str, str]
    executed: int
    day: str
    through: tuple[str, ...] = ()


Findings = dict[DeviceFamily, dict[str, OperatorFinding]]


def findings_by_device(evidence: Iterable[EvidenceFile]) -> Findings:
    """For each kind of device, each operator's newest finding; kinds and operators in order."""
    found: defaultdict[DeviceFamily, dict[str, OperatorFinding]] = defaultdict(dict)
    for each in sorted(evidence, key=lambda one: one.collected):
        found[DeviceFamily.of(each)].update(operator_findings(each))
    return {kind: dict(sorted(found[kind].items())) for kind in sorted(found)}


def operator_findings(evidence: EvidenceFile) -> dict[str, OperatorFinding]:
    """What one file says of each operator that it has a verdict of."""
    by_operator: defaultdict[str, list[tuple[str, OverloadRow]]] = defaultdict(list)
    for name, row in evidence.audit.overloads.items():
        by_operator[name.partition(".")[0]].append((name, row))
    return {operator: _finding(rows, evidence.day) for operator, rows in by_operator.items()}


def _finding(rows: list[tuple[str, OverloadRow]], day: str) -> OperatorFinding:
    parts = []
    by_dtype: defaultdict[str, list[tuple[Mapping[CaseVerdict, int], OverloadRow, bool]]] = defaultdict(list)
    for _, row in rows:
        together: Counter[CaseVerdict] = Counter()
        for each in row.dtypes.values():
            together.update(each.cases)
        works_somewhere = works(together)
        parts.append((together, row.dispatch, works_somewhere))
        for dtype, each in row.dtypes.items():
            by_dtype[dtype].append((each.cases, row, works_somewhere))
    verdict, _ = verdict_over(parts)
    dtypes: defaultdict[str, list[str]] = defaultdict(list)
    partly: defaultdict[str, list[str]] = defaultdict(list)
    for dtype, listed in by_dtype.items():
        of_dtype, broken = verdict_over((cases, row.dispatch, somewhere) for cases, row, somewhere in listed)
        if of_dtype is not OverloadVerdict.UNREACHABLE:
            dtypes["passed" if of_dtype.is_support else of_dtype.value].append(dtype)
        for each_broken in broken:
            partly[each_broken.value].append(dtype)
    return OperatorFinding(
        verdict=verdict,
        dtypes={name: tuple(listed) for name, listed in dtypes.items()},
        partly={name: tuple(listed) for name, listed in partly.items()},
        overloads={name: row.dispatch.value for name, row in rows if row.dispatch is not None},
        executed=sum(n for cases, _, _ in parts for case_verdict, n in cases.items() if case_verdict.executed),
        day=day,
        through=tuple(sorted({name for _, row in rows for name in row.through})),
    )


@dataclass(frozen=True)
class Conflict:
    """An operator of which devices with the same torch say different things: shown as they are.

    Attributes:
        operator: its name.
        torch: the release.
        said: what each kind of device said, in the order of kinds.
    """

    operator: str
    torch: str
    said: Mapping[DeviceFamily, OverloadVerdict] = field(default_factory=dict)

    @property
    def worst(self) -> OverloadVerdict:
        """The most serious of what was said."""
        return min(self.said.values(), key=SEVERITY.index)

    def __str__(self) -> str:
        told = "; ".join(f"{kind.chip}, macOS {kind.macos}: {verdict.value}" for kind, verdict in self.said.items())
        return f"{self.operator} with torch {self.torch}: {told}"


def conflicts(findings: Findings) -> list[Conflict]:
    """Where real devices with the same release of torch disagree about an operator, in the order of names."""
    said: defaultdict[tuple[str, str], dict[DeviceFamily, OverloadVerdict]] = defaultdict(dict)
    for kind, operators in findings.items():
        if not kind.simulated:
            for operator, finding in operators.items():
                said[operator, kind.torch][kind] = finding.verdict
    return [
        Conflict(operator, torch, by_kind)
        for (operator, torch), by_kind in sorted(said.items())
        if len(set(by_kind.values())) > 1
    ]


def newest_torch(findings: Findings, operator: str) -> list[tuple[DeviceFamily, OperatorFinding]]:
    """What the real devices with the newest torch that ran the operator say of it; none where no real device did."""
    real = [(kind, found[operator]) for kind, found in findings.items() if not kind.simulated and operator in found]
    if not real:
        return []
    newest = real[0][0].torch
    for kind, _ in real:
        if is_older(newest, kind.torch):
            newest = kind.torch
    return [(kind, finding) for kind, finding in real if kind.torch == newest]
