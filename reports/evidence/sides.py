"""What can be set side by side: a run of a store, a file of evidence, a release of torch as its wheel declares it."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from pydantic import ValidationError

from ...audit.findings.overload_verdict import BREAKAGES, verdict_of, works
from ...audit.model.verdicts import CaseVerdict, OverloadVerdict
from ...audit.releases.coverage.sources import release_coverage
from ...audit.releases.surface.overloads import Dispatch
from ...audit.store.records import Run
from ...audit.store.store import Store
from ...cache import cache_folder, fingerprint, fingerprint_of_code
from ...errors import MpsmithError
from .audited import audit_part
from .checking import checked
from .folder import SUFFIX
from .privacy import NOBODY
from .schema import AuditPart, KernelTiming

_RELEASE = re.compile(r"\d+\.\d+(?:\.\d+)?\S*")
_KEPT = 20
# What a release's wheel says of an overload, in the words of verdicts.
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
    """How an overload stands, in a dtype or over all: its verdict, and whether some case crashed, hung or was wrong."""

    verdict: OverloadVerdict
    broken: bool = False

    def __str__(self) -> str:
        says_so = self.verdict.value in {verdict.value for verdict in BREAKAGES}
        return f"{self.verdict.value}, wrong in some cases" if self.broken and not says_so else self.verdict.value


@dataclass(frozen=True)
class Side:
    """One of two things that are compared.

    Attributes:
        name: as it was asked for; `described` says in one line what it is.
        simulated: whether the device was; None where nothing was run.
        overloads: the standing of each, by name.
        dtypes: the same by overload and dtype; empty for a release, which is not run.
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
    """Whether a name is that of a release of torch, and of no file here."""
    return _RELEASE.fullmatch(name) is not None and not Path(name).exists()


def is_evidence(name: str) -> bool:
    """Whether a name is that of a file of evidence."""
    return name.endswith(SUFFIX)


def side_of_release(release: str) -> Side:
    """What the release's macOS wheel declares. Raises MpsmithError where the release cannot be had."""
    coverage = release_coverage(release)
    standing = {f"aten::{each.name}": SideVerdict(_DECLARED[each.dispatch]) for each in coverage.overloads}
    return Side(release, f"torch {coverage.release}, from its wheel (nothing was run)", None, standing)


def side_of_evidence(name: str) -> Side:
    """What a file of evidence says. Raises EvidenceError where it is refused."""
    evidence = checked(Path(name))
    machine = evidence.machine
    where = "the SIMULATED mps device" if evidence.simulated else f"{machine.chip}, macOS {machine.release}"
    described = f"evidence of {evidence.day}, torch {machine.torch} on {where}"
    timings = {row.timing.operator: row.timing for row in evidence.kernels if row.timing}
    return _side(name, described, evidence.audit, timings)


def side_of_run(store: Store, run: Run) -> Side:
    """What a run of a store says; summed up once, and taken from the cache afterwards."""
    device = "the SIMULATED mps device" if run.simulated else "an mps device"
    unfinished = "" if run.finished else ", not finished"
    described = f"run {run.id} of {store.path}, torch {run.environment['torch']} on {device}{unfinished}"
    return _side(str(store.path), described, _summed_up(store, run), {})


def _side(name: str, described: str, audit: AuditPart, timings: Mapping[str, KernelTiming]) -> Side:
    overloads: dict[str, SideVerdict] = {}
    dtypes: dict[tuple[str, str], SideVerdict] = {}
    for overload, row in audit.overloads.items():
        together: Counter[CaseVerdict] = Counter()
        for dtype, each in row.dtypes.items():
            together.update(each.cases)
            dtypes[overload, dtype] = SideVerdict(each.verdict, _broken(each.cases))
        verdict = verdict_of(together, row.dispatch, works_somewhere=works(together))
        overloads[overload] = SideVerdict(verdict, _broken(together))
    failing = {label: (verdict, message) for label, verdict, message in audit.failing_cases()}
    return Side(name, described, audit.simulated, overloads, dtypes, failing, timings)


def _broken(cases: Mapping[CaseVerdict, int]) -> bool:
    return any(cases.get(verdict) for verdict in BREAKAGES)


def _summed_up(store: Store, run: Run) -> AuditPart:
    """The run's verdicts and failing cases: attributing many cases takes seconds, so that the answer is kept."""
    path = cache_folder() / "verdicts" / f"{_key(store.path, run)}.json"
    try:
        return AuditPart.model_validate_json(path.read_bytes())
    except (OSError, ValidationError):
        part = audit_part(store, run, NOBODY)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary = path.with_suffix(".tmp")
        temporary.write_text(part.model_dump_json(exclude_defaults=True), encoding="utf-8")
        temporary.replace(path)
        _forget_oldest(path.parent)
    except OSError:  # a cache that cannot be written costs time alone
        pass
    return part


def _forget_oldest(folder: Path) -> None:
    """Keep the answers that were made last: a store that changed is never asked about as it was."""
    for path in sorted(folder.glob("*.json"), key=lambda each: each.stat().st_mtime)[:-_KEPT]:
        path.unlink(missing_ok=True)


def _key(path: Path, run: Run) -> str:
    """What the verdicts depend on: the file as it is, the run, and the code that attributes cases."""
    states = []
    for each in (path, path.with_name(f"{path.name}-wal")):
        if each.exists() and each.stat().st_size:
            found = each.stat()
            states.append(f"{each.resolve()} {found.st_size} {found.st_mtime_ns} {found.st_ino}")
    code = fingerprint_of_code(
        "audit.findings", "audit.releases.surface", "registry.known_wrong", "reports.evidence.audited"
    )
    return fingerprint(*states, str(run.id), run.started, str(run.finished), code)


def side_of(name: str) -> Side:
    """A release or a file of evidence by its name. Raises MpsmithError for anything else."""
    if is_release(name):
        return side_of_release(name)
    if is_evidence(name):
        return side_of_evidence(name)
    raise MpsmithError(f"{name}: neither a results store, nor evidence (*{SUFFIX}), nor a release such as 2.13.0")
