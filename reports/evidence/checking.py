"""Checks that evidence is consistent: with itself, and with the evidence of a real device.

A file that fits the schema is refused if it says something that no audit can say. A file that passes may still be made
up; the person who adds it decides about that.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta, timezone
from pathlib import Path

from ...audit.findings.overload_verdict import BREAKAGES, verdict_of, works
from ...audit.model.verdicts import CaseVerdict
from .files import EvidenceError, read
from .privacy import is_private
from .schema import LISTED, PREFLIGHT_STEPS, STRICT, EvidenceFile

# How far a clock may be ahead.
_AHEAD = timedelta(days=1)
_SHOWN = 5


def checked(path: Path, now: datetime | None = None) -> EvidenceFile:
    """The evidence in a file, if it is consistent. Raises EvidenceError that says what is wrong."""
    evidence = read(path)
    problems = problems_of(evidence, now)
    if problems:
        more = f"; and {len(problems) - _SHOWN} more" if len(problems) > _SHOWN else ""
        raise EvidenceError(f"{path}: refused: {'; '.join(problems[:_SHOWN])}{more}")
    return evidence


def problems_of(evidence: EvidenceFile, now: datetime | None = None) -> list[str]:
    """Inconsistencies of an evidence file, one sentence each."""
    return [
        *_mark_problems(evidence),
        *_device_problems(evidence),
        *_execution_problems(evidence),
        *_verdict_problems(evidence),
        *_listing_problems(evidence),
        *_kernel_problems(evidence),
        *_time_problems(evidence, now or datetime.now(timezone.utc)),
        *_privacy_problems(evidence),
    ]


def _mark_problems(evidence: EvidenceFile) -> Iterator[str]:
    """All parts of simulated evidence are marked, and unmarked evidence looks like that of a Mac."""
    machine = evidence.machine
    parts = [evidence.audit.simulated, *(kernel.simulated for kernel in evidence.kernels)]
    if any(part != evidence.simulated for part in parts):
        yield "some parts are marked simulated and others are not"
    if evidence.simulated:
        if machine.profile is None:
            yield "marked simulated, but without the release whose coverage was simulated"
        return
    signs = {
        "a coverage profile": machine.profile is not None,
        f"{machine.system}, not macOS": machine.system != "macOS",
        f"{machine.machine}, not arm64": machine.machine != "arm64",
        f"the chip '{machine.chip}', not one of Apple's": not machine.chip.startswith("Apple "),
        f"torch {machine.torch}, a build that Macs do not have": "+" in machine.torch,
    }
    shown = [sign for sign, present in signs.items() if present]
    if shown:
        yield f"not marked simulated, but it contains {', '.join(shown)}"


def _device_problems(evidence: EvidenceFile) -> Iterator[str]:
    """A real device was tried before its audit, and is the chip's own GPU."""
    if evidence.simulated:
        return
    passed = evidence.preflight.steps if evidence.preflight else {}
    if missing := [step for step in PREFLIGHT_STEPS if step not in passed]:
        yield f"no preflight tried {', '.join(missing)}: collect it again"
    if evidence.machine.virtual or "virtual" in evidence.machine.chip.lower():
        yield f"it was collected in a virtual machine, whose GPU is not that of the chip '{evidence.machine.chip}'"


def _execution_problems(evidence: EvidenceFile) -> Iterator[str]:
    audit = evidence.audit
    executed = sum(number for verdict, number in audit.cases.items() if verdict.executed)
    if not executed:
        yield "no case was executed"
    if executed != audit.executed:
        yield f"{audit.executed} executed cases, but its verdicts count {executed}"
    if executed and not audit.overloads:
        yield "cases were executed, but there is no verdict of any overload"


def _verdict_problems(evidence: EvidenceFile) -> Iterator[str]:
    """Every verdict follows from its own counts, and every counted breakage is listed."""
    listed = Counter[tuple[str, CaseVerdict]]()
    for group, same_outcome in evidence.audit.failing.items():
        for cases in same_outcome:
            dtype = group.removesuffix(STRICT).rpartition(":")[2]
            listed[dtype, cases.verdict] += len(cases.positions)
    most = 2 * sum(evidence.audit.cases.values())  # a case can fall back for an overload and pass in it
    for name, row in evidence.audit.overloads.items():
        total = row.cases
        if not row.dtypes:
            yield f"{name} has a row without any dtype"
        for dtype, counts in row.dtypes.items():
            follows = verdict_of(counts.cases, row.dispatch, works_somewhere=works(total))
            if follows is not counts.verdict:
                yield f"{name} in {dtype} is called {counts.verdict.value}, its cases say {follows.value}"
            for verdict in BREAKAGES:
                if counts.cases.get(verdict, 0) > listed[dtype, verdict] + evidence.audit.left_out.get(verdict, 0):
                    yield f"{name} in {dtype} counts more cases that are {verdict.value} than are listed"
        if total.total() > most:
            yield f"{name} counts more cases than there are"


def _listing_problems(evidence: EvidenceFile) -> Iterator[str]:
    """The listed cases are those that were counted, each once."""
    audit = evidence.audit
    listed: Counter[CaseVerdict] = Counter(audit.left_out)
    for group, same_outcome in audit.failing.items():
        positions = [position for cases in same_outcome for position in cases.positions]
        if len(set(positions)) != len(positions):
            yield f"a case of {group} is listed twice"
        for cases in same_outcome:
            listed[cases.verdict] += len(cases.positions)
    for verdict in sorted({*listed, *LISTED}, key=lambda verdict: verdict.value):
        if verdict not in LISTED:
            yield f"cases that are {verdict.value} are listed as failing"
        elif listed[verdict] != audit.cases.get(verdict, 0):
            yield f"{audit.cases.get(verdict, 0)} cases are {verdict.value}, but {listed[verdict]} are listed"


def _kernel_problems(evidence: EvidenceFile) -> Iterator[str]:
    families = Counter(kernel.family for kernel in evidence.kernels)
    yield from (f"the kernels of {family} are there twice" for family, times in families.items() if times > 1)
    for kernel in evidence.kernels:
        if kernel.failed < len(kernel.failures):
            yield f"{kernel.family} lists more failures than it counts"
        if kernel.operators and not kernel.cases:
            yield f"{kernel.family} says that kernels answered, but no case was executed"
        if kernel.passed and not (kernel.operators and kernel.checks):
            yield f"{kernel.family} is said to pass without a kernel that answered or a check"


def _time_problems(evidence: EvidenceFile, now: datetime) -> Iterator[str]:
    if evidence.collected > now + _AHEAD:
        yield f"collected on {evidence.day}, which is to come: set the clock"


def _privacy_problems(evidence: EvidenceFile) -> Iterator[str]:
    if any(is_private(text) or not text.isprintable() for text in set(_free_texts(evidence))):
        yield "a message holds a path, an address or what else may name a person or a machine"


def _free_texts(evidence: EvidenceFile) -> Iterable[str]:
    """All texts whose form the schema does not restrict."""
    machine, audit = evidence.machine, evidence.audit
    yield from (machine.chip, machine.system, machine.machine, machine.build or "", *machine.variables.values())
    yield from (audit.samples, *audit.ops, *audit.dtypes, *audit.sources)
    yield from (cases.message for same_outcome in audit.failing.values() for cases in same_outcome)
    yield from (name for row in audit.overloads.values() for name in row.through)
    yield from (text for step in (evidence.preflight.steps.items() if evidence.preflight else ()) for text in step)
    for kernel in evidence.kernels:
        yield from (kernel.ended, kernel.untimed, *kernel.checks)
        yield from (text for failure in kernel.failures for text in (failure.what, failure.reason))
        yield kernel.timing.without_is if kernel.timing else ""
