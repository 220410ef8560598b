"""What real devices showed: of each kind of device the newest evidence, operator by operator, side by side.

A kind of device is a family of chips, a macOS and a release of torch. Evidence of another kind is another finding: it
is set beside, and never averaged or voted on.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import cmp_to_key, lru_cache
from typing import Any

from ...audit.findings.overload_verdict import SEVERITY, verdict_over
from ...audit.model.verdicts import CaseVerdict, OverloadVerdict
from ...audit.releases.surface.overloads import Dispatch
from ...registry.torch_release import is_older, public_version
from .schema import EvidenceFile, OverloadRow

_CHIP = re.compile(r"Apple [A-Z]\d+")
_MACOS = re.compile(r"macOS-(?P<release>\d+)")


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
        return cls(_family(machine.chip), machine.release.partition(".")[0], public_version(machine.torch))

    @classmethod
    def of_audit(cls, environment: Mapping[str, Any]) -> DeviceFamily:
        """The kind of the device of an audit, by the environment that it recorded (`audit.running.environment`)."""
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
    found = _CHIP.match(chip)
    return found.group() if found else chip


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
    day: str = ""
    through: tuple[str, ...] = ()


Findings = dict[DeviceFamily, dict[str, OperatorFinding]]

Rows = Mapping[str, OverloadRow]


class FindingsOfDevices:
    """Takes evidence in, one file after the other in any order, and keeps of each kind of device the newest findings.

    A file is not kept: what hundreds of them say fits into memory, since alike rows are the same object in all of them
    (`reading`), and an operator with the same rows is summed up once.
    """

    def __init__(self) -> None:
        self._files: defaultdict[DeviceFamily, list[tuple[datetime, dict[str, OperatorFinding]]]] = defaultdict(list)
        self._summed: dict[tuple[object, ...], tuple[list[OverloadRow], OperatorFinding]] = {}
        self._before: tuple[Rows, dict[str, OperatorFinding]] = {}, {}

    def add(self, evidence: EvidenceFile) -> None:
        """Take one file in."""
        self.add_rows(DeviceFamily.of(evidence), evidence.collected, evidence.audit.overloads)

    def add_rows(self, kind: DeviceFamily, collected: datetime, rows: Rows) -> None:
        """Take in what a device of this kind showed; of two that are as old the later one counts."""
        by_operator = _by_operator(tuple(rows))
        before, found = self._before
        operators: Iterable[str] = by_operator
        if before.keys() == rows.keys():  # as files mostly are: what they have in common was summed up for the last one
            operators = dict.fromkeys(_operator_of(name) for name, row in rows.items() if before[name] is not row)
            found = dict(found)
        else:
            found = {}
        for operator in operators:
            names = by_operator[operator]
            found[operator] = self._summed_up(names, [rows[name] for name in names])
        self._before = rows, found
        self._files[kind].append((collected, found))

    def findings(self) -> Findings:
        """For each kind of device, each operator's newest finding; kinds and operators in order."""
        dated: defaultdict[str, dict[int, OperatorFinding]] = defaultdict(dict)
        findings: Findings = {}
        for kind in sorted(self._files):
            newest: dict[str, OperatorFinding] = {}
            for collected, found in sorted(self._files[kind], key=lambda file: file[0]):
                day = f"{collected:%Y-%m-%d}"
                of_day = dated[day]
                for operator, finding in found.items():
                    known = of_day.get(id(finding))
                    if known is None:
                        known = of_day[id(finding)] = replace(finding, day=day)
                    newest[operator] = known
            findings[kind] = dict(sorted(newest.items()))
        return findings

    def _summed_up(self, names: tuple[str, ...], rows: list[OverloadRow]) -> OperatorFinding:
        """The finding, without a day. The rows are kept beside it, so that none can take the place of another."""
        key = (names, *map(id, rows))
        known = self._summed.get(key)
        if known is None:
            known = self._summed[key] = rows, _finding(names, rows)
        return known[1]


def findings_of(rows: Rows) -> dict[str, OperatorFinding]:
    """What rows of overloads say of each operator; on no day."""
    by_operator = _by_operator(tuple(rows))
    return {operator: _finding(names, [rows[name] for name in names]) for operator, names in by_operator.items()}


def findings_by_device(evidence: Iterable[EvidenceFile]) -> Findings:
    """For each kind of device, each operator's newest finding; kinds and operators in order."""
    found = FindingsOfDevices()
    for each in evidence:
        found.add(each)
    return found.findings()


@lru_cache(maxsize=16)  # files mostly tell of the same overloads
def _by_operator(overloads: tuple[str, ...]) -> Mapping[str, tuple[str, ...]]:
    """The names of overloads by their operators."""
    found: defaultdict[str, list[str]] = defaultdict(list)
    for name in overloads:
        found[_operator_of(name)].append(name)
    return {operator: tuple(names) for operator, names in found.items()}


def _operator_of(overload: str) -> str:
    return overload.partition(".")[0]


def _finding(names: Sequence[str], rows: Sequence[OverloadRow]) -> OperatorFinding:
    by_dtype: defaultdict[str, list[tuple[Mapping[CaseVerdict, int], Dispatch | None, bool]]] = defaultdict(list)
    for row in rows:
        for dtype, each in row.dtypes.items():
            by_dtype[dtype].append((each.cases, row.dispatch, row.works_somewhere))
    verdict, _ = verdict_over((row.cases, row.dispatch, row.works_somewhere) for row in rows)
    dtypes: defaultdict[str, list[str]] = defaultdict(list)
    partly: defaultdict[str, list[str]] = defaultdict(list)
    for dtype, listed in by_dtype.items():
        of_dtype, broken = verdict_over(listed)
        if of_dtype is not OverloadVerdict.UNREACHABLE:
            dtypes["passed" if of_dtype.is_support else of_dtype.value].append(dtype)
        for each_broken in broken:
            partly[each_broken.value].append(dtype)
    return OperatorFinding(
        verdict=verdict,
        dtypes={name: tuple(listed) for name, listed in dtypes.items()},
        partly={name: tuple(listed) for name, listed in partly.items()},
        overloads={name: row.dispatch.value for name, row in zip(names, rows, strict=True) if row.dispatch is not None},
        executed=sum(n for row in rows for case_verdict, n in row.cases.items() if case_verdict.executed),
        through=tuple(sorted({name for row in rows for name in row.through})),
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


def by_newest_torch(findings: Findings) -> dict[str, list[tuple[DeviceFamily, OperatorFinding]]]:
    """For each operator, by name, what the real devices with the newest torch that ran it say of it."""
    real = [kind for kind in findings if not kind.simulated]
    newest: dict[str, list[tuple[DeviceFamily, OperatorFinding]]] = {}
    for torch in newest_first({kind.torch for kind in real}):
        of_torch = [kind for kind in real if kind.torch == torch]
        for operator in {name for kind in of_torch for name in findings[kind]} - newest.keys():
            newest[operator] = [(kind, findings[kind][operator]) for kind in of_torch if operator in findings[kind]]
    return dict(sorted(newest.items()))


def newest_first(releases: Iterable[str]) -> list[str]:
    """Releases of torch, the newest first; of two that are as new the one whose name comes first."""
    return sorted(sorted(releases), key=cmp_to_key(_later))


def _later(one: str, other: str) -> int:
    return is_older(one, other) - is_older(other, one)
