"""Compares two audits, evidence files or releases: verdicts by overload and dtype, failing cases, kernel times."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path

from ...audit.findings.overload_verdict import BREAKAGES, SEVERITY, verdict_of, works
from ...audit.model.verdicts import CaseVerdict, OverloadVerdict
from ...audit.releases.coverage.sources import release_coverage
from ...audit.releases.surface.overloads import Dispatch
from ...audit.store.records import Run
from ...audit.store.store import Store
from ...errors import MpsmithError
from .checking import checked
from .collecting import audit_part
from .files import SUFFIX
from .privacy import NO_NAMES
from .schema import AuditPart, KernelTiming

_RELEASE = re.compile(r"\d+\.\d+(?:\.\d+)?\S*")
# The verdict that a release's wheel declares for an overload.
_DECLARED: dict[Dispatch, OverloadVerdict] = {
    Dispatch.NATIVE: OverloadVerdict.NATIVE,
    Dispatch.STRUCTURED_DELEGATE: OverloadVerdict.NATIVE,
    Dispatch.COMPOSITE_IMPLICIT: OverloadVerdict.COMPOSITE,
    Dispatch.COMPOSITE_EXPLICIT: OverloadVerdict.COMPOSITE,
    Dispatch.ALWAYS_FALLS_BACK: OverloadVerdict.FALLBACK,
    Dispatch.MISSING: OverloadVerdict.MISSING,
    Dispatch.MISSING_EVERYWHERE: OverloadVerdict.MISSING,
}


@dataclass(frozen=True)
class SideVerdict:
    """A verdict of an overload, and whether some case crashed, timed out or was wrong."""

    verdict: OverloadVerdict
    broken: bool = False

    def __str__(self) -> str:
        is_breakage = self.verdict.value in {verdict.value for verdict in BREAKAGES}
        return f"{self.verdict.value}, wrong in some cases" if self.broken and not is_breakage else self.verdict.value


@dataclass(frozen=True)
class Side:
    """One of the two sides.

    Attributes:
        name: as the user gave it; `described` is one line about it.
        simulated: whether the device was simulated; None for a release, which is not run.
        overloads: the verdict of each overload.
        dtypes: the verdict of each overload and dtype; empty for a release.
        failing: the cases that did not pass, by label: the verdict and the message.
        timings: of kernels, by the overload that was timed.
    """

    name: str
    described: str
    simulated: bool | None
    overloads: Mapping[str, SideVerdict]
    dtypes: Mapping[tuple[str, str], SideVerdict] = field(default_factory=dict)
    failing: Mapping[str, tuple[CaseVerdict, str]] = field(default_factory=dict)
    timings: Mapping[str, KernelTiming] = field(default_factory=dict)


def is_release(name: str) -> bool:
    """Whether a name is a release of torch, and not a file here."""
    return _RELEASE.fullmatch(name) is not None and not Path(name).exists()


def is_evidence(name: str) -> bool:
    """Whether a name is that of an evidence file."""
    return name.endswith(SUFFIX)


def side_of(name: str) -> Side:
    """A release or an evidence file by its name. Raises MpsmithError for anything else."""
    if is_release(name):
        return _side_of_release(name)
    if is_evidence(name):
        return _side_of_evidence(name)
    raise MpsmithError(f"{name}: neither a results store, nor evidence (*{SUFFIX}), nor a release such as 2.13.0")


def side_of_run(store: Store, run: Run) -> Side:
    """A run of a store."""
    profile = f" with the coverage of torch {run.environment['profile']}" if run.environment.get("profile") else ""
    device = f"the SIMULATED mps device{profile}" if run.simulated else "an mps device"
    device += f" and the host code of {run.host_code}" if run.host_code else ""
    unfinished = "" if run.finished else ", not finished"
    described = f"run {run.id} of {store.path}, torch {run.environment['torch']} on {device}{unfinished}"
    return _side(str(store.path), described, audit_part(store, run, NO_NAMES), {})


def _side_of_release(release: str) -> Side:
    coverage = release_coverage(release)
    verdicts = {f"aten::{overload.name}": SideVerdict(_DECLARED[overload.dispatch]) for overload in coverage.overloads}
    return Side(release, f"torch {coverage.release}, from its wheel (nothing was run)", None, verdicts)


def _side_of_evidence(name: str) -> Side:
    evidence = checked(Path(name))
    machine = evidence.machine
    device = "the SIMULATED mps device" if evidence.simulated else f"{machine.chip}, macOS {machine.release}"
    described = f"evidence of {evidence.day}, torch {machine.torch} on {device}"
    timings = {row.timing.operator: row.timing for row in evidence.kernels if row.timing}
    return _side(name, described, evidence.audit, timings)


def _side(name: str, described: str, audit: AuditPart, timings: Mapping[str, KernelTiming]) -> Side:
    overloads: dict[str, SideVerdict] = {}
    dtypes: dict[tuple[str, str], SideVerdict] = {}
    for overload, row in audit.overloads.items():
        total = row.cases
        verdict = verdict_of(total, row.dispatch, works_somewhere=works(total))
        overloads[overload] = SideVerdict(verdict, _is_broken(total))
        for dtype, counts in row.dtypes.items():
            dtypes[overload, dtype] = SideVerdict(counts.verdict, _is_broken(counts.cases))
    failing = {label: (verdict, message) for label, verdict, message in audit.failing_cases()}
    return Side(name, described, audit.simulated, overloads, dtypes, failing, timings)


def _is_broken(cases: Mapping[CaseVerdict, int]) -> bool:
    return any(cases.get(verdict) for verdict in BREAKAGES)


class Transition(str, Enum):
    """How an overload changed from the first side to the second, the most serious change first."""

    NEW_WRONG = "new wrong result"
    WORSE = "worse"
    OTHER = "other"
    BETTER = "better"
    ONLY_BEFORE = "only before"
    ONLY_AFTER = "only after"

    @property
    def is_worse(self) -> bool:
        """Whether the change is for the worse."""
        return self in (Transition.NEW_WRONG, Transition.WORSE)


@dataclass(frozen=True)
class VerdictChange:
    """An overload with different verdicts; `dtype` is "" if sides are compared over all dtypes."""

    overload: str
    dtype: str
    before: SideVerdict | None
    after: SideVerdict | None
    became: Transition


@dataclass(frozen=True)
class NewFailure:
    """A case that crashed, timed out or was wrong on the second side only."""

    case: str
    verdict: CaseVerdict
    message: str


@dataclass(frozen=True)
class TimeChange:
    """The times of one kernel on both sides, in milliseconds; None if a side has none."""

    operator: str
    before: float | None
    after: float | None


@dataclass(frozen=True)
class Differences:
    """Two sides and their differences."""

    before: Side
    after: Side
    verdicts: tuple[VerdictChange, ...]
    failures: tuple[NewFailure, ...]
    times: tuple[TimeChange, ...]

    @property
    def by_dtype(self) -> bool:
        """Whether verdicts are compared dtype by dtype."""
        return bool(self.before.dtypes and self.after.dtypes)

    def has(self, *kinds: Transition) -> bool:
        """Whether an overload changed in one of these ways."""
        return any(change.became in kinds for change in self.verdicts)


def differences(before: Side, after: Side) -> Differences:
    """All differences; overloads that only one side has evidence of are listed last."""
    if before.dtypes and after.dtypes:
        old, new = dict(before.dtypes), dict(after.dtypes)
    else:
        old, new = ({(name, ""): verdict for name, verdict in side.overloads.items()} for side in (before, after))
    changes = [
        VerdictChange(*key, old.get(key), new.get(key), _transition(old.get(key), new.get(key)))
        for key in sorted({*old, *new})
        if old.get(key) != new.get(key)
    ]
    changes.sort(key=lambda change: list(Transition).index(change.became))
    return Differences(before, after, tuple(changes), tuple(_failures(before, after)), tuple(_times(before, after)))


def _transition(before: SideVerdict | None, after: SideVerdict | None) -> Transition:
    if before is None or after is None:
        return Transition.ONLY_AFTER if before is None else Transition.ONLY_BEFORE
    if after.broken != before.broken:
        return Transition.NEW_WRONG if after.broken else Transition.BETTER
    if before.verdict.is_support and after.verdict.is_support:
        return Transition.OTHER
    return Transition.WORSE if SEVERITY.index(after.verdict) < SEVERITY.index(before.verdict) else Transition.BETTER


def _failures(before: Side, after: Side) -> Iterator[NewFailure]:
    for label, (verdict, message) in after.failing.items():
        earlier = before.failing.get(label)
        if verdict in BREAKAGES and (earlier is None or earlier[0] not in BREAKAGES):
            yield NewFailure(label, verdict, message)


def _times(before: Side, after: Side) -> Iterator[TimeChange]:
    for operator in sorted({*before.timings, *after.timings}):
        old, new = before.timings.get(operator), after.timings.get(operator)
        yield TimeChange(operator, old.kernel if old else None, new.kernel if new else None)
