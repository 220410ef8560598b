"""Findings by kind of device: for each operator the newest evidence, where kinds disagree, and what is measured.

A kind of device is a chip family, a macOS release and a release of torch. Findings of different kinds are shown side by
side, never averaged.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cmp_to_key
from typing import Any

from ...audit.findings.overload_verdict import SEVERITY, verdict_over, works
from ...audit.model.verdicts import CaseVerdict, OverloadVerdict
from ...audit.releases.surface.overloads import Dispatch
from ...registry.sync import Measurement
from ...registry.torch_release import is_older, public_version
from .schema import EvidenceFile, OverloadRow

_CHIP = re.compile(r"Apple [A-Z]\d+")
_MACOS = re.compile(r"macOS-(?P<release>\d+)")


@dataclass(frozen=True, order=True)
class DeviceFamily:
    """A kind of device: "Apple M3" for M3, M3 Pro and M3 Max; "15" for macOS 15.5."""

    chip: str
    macos: str
    torch: str
    simulated: bool = False

    @classmethod
    def of(cls, evidence: EvidenceFile) -> DeviceFamily:
        """The kind of the device that made the evidence; for a simulated one the release is that of its coverage."""
        machine = evidence.machine
        if evidence.simulated:
            return cls("simulated", "", machine.profile or public_version(machine.torch), simulated=True)
        return cls(_family(machine.chip), machine.release.partition(".")[0], public_version(machine.torch))

    @classmethod
    def of_audit(cls, environment: Mapping[str, Any]) -> DeviceFamily:
        """The kind of the device of an audit, from its recorded environment (`audit.running.environment`)."""
        torch = public_version(str(environment.get("torch", "unknown")))
        if environment.get("simulated"):
            return cls("simulated", "", public_version(str(environment.get("profile") or torch)), simulated=True)
        system = _MACOS.match(str(environment.get("os", "")))
        return cls(_family(str(environment.get("chip", "unknown"))), system["release"] if system else "unknown", torch)

    def __str__(self) -> str:
        if self.simulated:
            return f"SIMULATED, torch {self.torch}"
        return f"{self.chip}, macOS {self.macos}, torch {self.torch}"


def _family(chip: str) -> str:
    match = _CHIP.match(chip)
    return match.group() if match else chip


@dataclass(frozen=True)
class OperatorFinding:
    """The newest evidence of one kind of device about one operator.

    Attributes:
        verdict: over all overloads.
        dtypes: by verdict of executed cases, in the registry's words ("passed" for any support).
        partly: the dtypes in which some cases crash, time out or are wrong, but most have a different verdict.
        overloads: the dispatch of each overload.
        executed: the number of cases; a case that calls several overloads counts for each.
        day: when the evidence was collected.
        inner_fallbacks: operators inside it that fell back or are missing.
    """

    verdict: OverloadVerdict
    dtypes: Mapping[str, tuple[str, ...]]
    partly: Mapping[str, tuple[str, ...]]
    overloads: Mapping[str, str]
    executed: int
    day: str = ""
    inner_fallbacks: tuple[str, ...] = ()


Findings = dict[DeviceFamily, dict[str, OperatorFinding]]


def findings_by_device(evidence: Iterable[EvidenceFile]) -> Findings:
    """For each kind of device the newest finding of each operator; kinds and operators in order."""
    findings: Findings = {}
    for file in sorted(evidence, key=lambda evidence_file: evidence_file.collected):
        of_kind = findings.setdefault(DeviceFamily.of(file), {})
        for operator, finding in findings_of(file.audit.overloads).items():
            of_kind[operator] = replace(finding, day=file.day)
    return {kind: dict(sorted(findings[kind].items())) for kind in sorted(findings)}


def findings_of(rows: Mapping[str, OverloadRow]) -> dict[str, OperatorFinding]:
    """The finding of each operator, from the rows of its overloads; without a day."""
    by_operator: defaultdict[str, dict[str, OverloadRow]] = defaultdict(dict)
    for overload, row in rows.items():
        by_operator[overload.partition(".")[0]][overload] = row
    return {operator: _finding(of_operator) for operator, of_operator in by_operator.items()}


def _finding(rows: Mapping[str, OverloadRow]) -> OperatorFinding:
    totals = {name: row.cases for name, row in rows.items()}
    by_dtype: defaultdict[str, list[tuple[Mapping[CaseVerdict, int], Dispatch | None, bool]]] = defaultdict(list)
    for name, row in rows.items():
        for dtype, counts in row.dtypes.items():
            by_dtype[dtype].append((counts.cases, row.dispatch, works(totals[name])))
    verdict, _ = verdict_over((totals[name], row.dispatch, works(totals[name])) for name, row in rows.items())
    dtypes: defaultdict[str, list[str]] = defaultdict(list)
    partly: defaultdict[str, list[str]] = defaultdict(list)
    for dtype, listed in by_dtype.items():
        of_dtype, breakages = verdict_over(listed)
        if of_dtype is not OverloadVerdict.UNREACHABLE:
            dtypes["passed" if of_dtype.is_support else of_dtype.value].append(dtype)
        for breakage in breakages:
            partly[breakage.value].append(dtype)
    return OperatorFinding(
        verdict=verdict,
        dtypes={name: tuple(listed) for name, listed in dtypes.items()},
        partly={name: tuple(listed) for name, listed in partly.items()},
        overloads={name: row.dispatch.value for name, row in rows.items() if row.dispatch is not None},
        executed=sum(n for total in totals.values() for verdict_, n in total.items() if verdict_.executed),
        inner_fallbacks=tuple(sorted({name for row in rows.values() for name in row.through})),
    )


@dataclass(frozen=True)
class Conflict:
    """An operator with different verdicts on real devices with the same torch."""

    operator: str
    torch: str
    verdicts: Mapping[DeviceFamily, OverloadVerdict] = field(default_factory=dict)

    @property
    def worst(self) -> OverloadVerdict:
        """The most serious verdict."""
        return min(self.verdicts.values(), key=SEVERITY.index)

    def __str__(self) -> str:
        return f"{self.operator} with torch {self.torch}: {_listed(self.verdicts)}"


def _listed(verdicts: Mapping[DeviceFamily, OverloadVerdict]) -> str:
    return "; ".join(f"{kind.chip}, macOS {kind.macos}: {verdict.value}" for kind, verdict in verdicts.items())


def conflicts(findings: Findings) -> list[Conflict]:
    """Where real devices with the same release of torch disagree about an operator, in the order of names."""
    verdicts: defaultdict[tuple[str, str], dict[DeviceFamily, OverloadVerdict]] = defaultdict(dict)
    for kind, operators in findings.items():
        if not kind.simulated:
            for operator, finding in operators.items():
                verdicts[operator, kind.torch][kind] = finding.verdict
    return [
        Conflict(operator, torch, by_kind)
        for (operator, torch), by_kind in sorted(verdicts.items())
        if len(set(by_kind.values())) > 1
    ]


def real_measurements(findings: Findings) -> list[Measurement]:
    """One measurement for each operator that a real device ran, by name; simulated devices measure nothing.

    The newest torch counts. If devices with that torch disagree, the worst verdict is measured, and the reason lists
    the verdict of each.
    """
    newest: dict[str, list[tuple[DeviceFamily, OperatorFinding]]] = {}
    real = [kind for kind in findings if not kind.simulated]
    for torch in newest_first({kind.torch for kind in real}):
        of_torch = [kind for kind in real if kind.torch == torch]
        for operator in {name for kind in of_torch for name in findings[kind]} - newest.keys():
            newest[operator] = [(kind, findings[kind][operator]) for kind in of_torch if operator in findings[kind]]
    measured = (_measurement(operator, by_kind) for operator, by_kind in sorted(newest.items()))
    return [measurement for measurement in measured if measurement is not None]


def _measurement(operator: str, by_kind: Sequence[tuple[DeviceFamily, OperatorFinding]]) -> Measurement | None:
    kind, worst = min(by_kind, key=lambda kind_and_finding: SEVERITY.index(kind_and_finding[1].verdict))
    if worst.verdict is OverloadVerdict.UNREACHABLE:
        return None
    verdicts = {kind: finding.verdict for kind, finding in by_kind}
    reason = None
    if len(set(verdicts.values())) > 1:
        reason = f"devices differ: {_listed(verdicts)}"
    elif worst.verdict is OverloadVerdict.FALLBACK and worst.inner_fallbacks:
        reason = f"through {', '.join(worst.inner_fallbacks)}"
    return Measurement(
        operator=operator,
        torch=kind.torch,
        device="mps",
        profile=None,
        overloads=worst.overloads,
        verdict=worst.verdict.value,
        dtypes=worst.dtypes,
        partly=worst.partly,
        reason=reason,
    )


def newest_first(releases: Iterable[str]) -> list[str]:
    """Releases of torch, the newest first; equally new ones by name."""
    return sorted(sorted(releases), key=cmp_to_key(_compare_releases))


def _compare_releases(release: str, other: str) -> int:
    return is_older(release, other) - is_older(other, release)
