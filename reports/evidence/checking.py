"""Whether evidence can be true: against itself, and against what a real device's evidence looks like.

A file that fits the schema may still say what no audit says. What is found here refuses it; nothing here proves that
somebody did not make it up: that is for the person who takes it in.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta, timezone
from functools import lru_cache
from pathlib import Path

from ...audit.model.verdicts import CaseVerdict
from .errors import EvidenceError
from .privacy import names_somebody
from .reading import read
from .schema import LISTED, EvidenceFile, dtype_of

# A clock may be off by so much.
_AHEAD = timedelta(days=1)
_SHOWN = 5


def checked(path: Path, now: datetime | None = None) -> EvidenceFile:
    """The evidence in a file that can be true. Raises EvidenceError that says what is wrong."""
    evidence = read(path)
    found = problems_of(evidence, now)
    if found:
        more = f"; and {len(found) - _SHOWN} more" if len(found) > _SHOWN else ""
        raise EvidenceError(f"{path}: refused: {'; '.join(found[:_SHOWN])}{more}")
    return evidence


def problems_of(evidence: EvidenceFile, now: datetime | None = None) -> list[str]:
    """What cannot be true of the evidence, a sentence each; none where it may be."""
    return [
        *_marks(evidence),
        *_executed(evidence),
        *_verdicts(evidence),
        *_failing(evidence),
        *_kernels(evidence),
        *_time(evidence, now or datetime.now(timezone.utc)),
        *_private(evidence),
    ]


def _marks(evidence: EvidenceFile) -> Iterator[str]:
    """Simulated evidence is marked as such in all its parts, and looks like it; a real device's does not."""
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
    told = [sign for sign, shown in signs.items() if shown]
    if told:
        yield f"not marked simulated, but it tells of {', '.join(told)}"


def _executed(evidence: EvidenceFile) -> Iterator[str]:
    audit = evidence.audit
    executed = sum(number for verdict, number in audit.cases.items() if verdict.executed)
    if not executed:
        yield "no case was executed"
    if executed != audit.executed:
        yield f"{audit.executed} executed cases, but its verdicts count {executed}"
    if executed and not audit.overloads:
        yield "cases were executed, but there is no verdict of any overload"


def _verdicts(evidence: EvidenceFile) -> Iterator[str]:
    """Every verdict is the one that its own counts give, and counts broken cases that there are."""
    broken = Counter[tuple[str, CaseVerdict]]()
    for group, alike in evidence.audit.failing.items():
        for cases in alike:
            broken[dtype_of(group), cases.verdict] += len(cases.positions)
    left_out = evidence.audit.left_out
    most = 2 * sum(evidence.audit.cases.values())  # a case can fall back for an overload and pass in it
    for name, row in evidence.audit.overloads.items():
        if row.is_simple and row.counted <= most:
            continue
        if not row.dtypes:
            yield f"{name} has a row without any dtype"
        for dtype, follows in row.contradicted.items():
            yield f"{name} in {dtype} is called {row.dtypes[dtype].verdict.value}, its cases say {follows.value}"
        for dtype, verdict, number in row.broken:
            if number > broken[dtype, verdict] + left_out.get(verdict, 0):
                yield f"{name} in {dtype} counts more cases that are {verdict.value} than are listed"
        if row.counted > most:
            yield f"{name} counts more cases than there are"


def _failing(evidence: EvidenceFile) -> Iterator[str]:
    """The listed cases are those that were counted, each once."""
    audit = evidence.audit
    listed: Counter[CaseVerdict] = Counter(audit.left_out)
    for group, alike in audit.failing.items():
        positions = [position for each in alike for position in each.positions]
        if len(set(positions)) != len(positions):
            yield f"a case of {group} is listed twice"
        for each in alike:
            listed[each.verdict] += len(each.positions)
    for verdict in sorted({*listed, *LISTED}, key=lambda verdict: verdict.value):
        if verdict not in LISTED:
            yield f"cases that are {verdict.value} are listed as failing"
        elif listed[verdict] != audit.cases.get(verdict, 0):
            yield f"{audit.cases.get(verdict, 0)} cases are {verdict.value}, but {listed[verdict]} are listed"


def _kernels(evidence: EvidenceFile) -> Iterator[str]:
    families = Counter(kernel.family for kernel in evidence.kernels)
    yield from (f"the kernels of {family} are there twice" for family, times in families.items() if times > 1)
    for kernel in evidence.kernels:
        if kernel.failed < len(kernel.failures):
            yield f"{kernel.family} lists more failures than it counts"
        if kernel.operators and not kernel.cases:
            yield f"{kernel.family} says that kernels answered, but no case was executed"
        if kernel.passed and not (kernel.operators and kernel.checks):
            yield f"{kernel.family} is said to pass without a kernel that answered or a check"


def _time(evidence: EvidenceFile, now: datetime) -> Iterator[str]:
    if evidence.collected > now + _AHEAD:
        yield f"collected on {evidence.day}, which is to come: set the clock"


def _private(evidence: EvidenceFile) -> Iterator[str]:
    if any(_is_private(text) for text in set(_free_texts(evidence))):
        yield "a message holds a path, an address or what else may name a person or a machine"


@lru_cache(maxsize=2**16)  # devices mostly say the same
def _is_private(text: str) -> bool:
    return names_somebody(text) or not text.isprintable()


def _free_texts(evidence: EvidenceFile) -> Iterable[str]:
    """Everything in the file that is not bound to a form by the schema."""
    machine = evidence.machine
    yield from (machine.chip, machine.system, machine.machine, machine.build or "")
    yield from machine.variables.values()
    yield from (each.message for alike in evidence.audit.failing.values() for each in alike)
    yield from (name for row in evidence.audit.overloads.values() for name in row.through)
    audit = evidence.audit
    yield from (audit.samples, *audit.ops, *audit.dtypes, *audit.sources)
    for kernel in evidence.kernels:
        yield from (kernel.ended, kernel.untimed, *kernel.checks)
        yield from (text for failure in kernel.failures for text in (failure.what, failure.reason))
        yield kernel.timing.without_is if kernel.timing else ""
