"""What torch lacks on mps, overload by overload, and what is left of it with our kernels: from audits with both.

`mpsmith audit --with-kernels` leaves two runs in a store, of which the second imported `mpsmith.kernels`. An overload
belongs to the backlog where the first run fell back to the CPU for it or was refused.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ...audit.findings.audited_surface import audited_surface
from ...audit.findings.explanations import Explanation
from ...audit.findings.results import AuditSummary, OverloadSummary
from ...audit.findings.summary import summarize
from ...audit.model.selection import NARROWING
from ...audit.model.verdicts import CaseVerdict
from ...audit.releases.data import release_order
from ...audit.releases.surface.overloads import Dispatch
from ...audit.store.records import Run
from ...audit.store.store import Store
from ...errors import MpsmithError
from ..runtime import catalog

OURS = "mpsmith.kernels"
LACKING = (CaseVerdict.FALLBACK, CaseVerdict.MISSING)
# What may be left of a case with our kernels.
LEFT = (CaseVerdict.CRASH, CaseVerdict.TIMEOUT, CaseVerdict.WRONG, *LACKING, CaseVerdict.DTYPE_GAP)


@dataclass(frozen=True)
class BacklogRow:
    """One overload of the backlog on one release.

    Attributes:
        lacking: cases that fell back or were refused without our kernels.
        passed: cases that called it and came out right with them.
        left: cases that did not, by verdict.
    """

    lacking: int
    passed: int
    left: Mapping[CaseVerdict, int]


@dataclass(frozen=True)
class Backlog:
    """What the audits of one release show.

    Attributes:
        release: whose coverage the device had.
        simulated: whether the device was the simulated one.
        selection: which cases were run.
        executed: cases with our kernels that the device was asked for.
        overloads: by name.
        explanation: which rules explain the cases that did not pass with our kernels, in all that was audited.
    """

    release: str
    simulated: bool
    selection: str
    executed: int
    overloads: Mapping[str, BacklogRow]
    explanation: Explanation

    @property
    def left(self) -> tuple[str, ...]:
        """The overloads that still fall back or are refused somewhere."""
        return tuple(name for name, row in self.overloads.items() if any(row.left.get(verdict) for verdict in LACKING))


def backlogs_of(path: Path) -> list[Backlog]:
    """The backlog by the newest audit with kernels of each release in a store, the oldest release first.

    Raises StoreError for a file that is not a store, MpsmithError for a store without such an audit.
    """
    with Store.open(path) as store:
        backlogs = [_backlog(store, before, after) for before, after in _newest_pairs(store.runs())]
    if not backlogs:
        raise MpsmithError(
            f"{path} holds no audit with kernels; write one with: mpsmith audit --with-kernels --store {path}"
        )
    return sorted(backlogs, key=lambda backlog: release_order(backlog.release))


def _backlog(store: Store, before: Run, after: Run) -> Backlog:
    without, including = (summarize(store, run, audited_surface(run)) for run in (before, after))
    answered = {overload.name: overload for overload in including.overloads}
    return Backlog(
        release=including.surface_release,
        simulated=after.simulated,
        selection=_selection(after.settings),
        executed=including.run.executed,
        overloads={
            overload.name: _row_of_overload(overload, answered[overload.name]) for overload in _lacking(without)
        },
        explanation=including.explanation,
    )


def _selection(settings: Mapping[str, Any]) -> str:
    """How the cases were chosen, in words."""
    names = [f"{len(settings[name])} {name}" for name in NARROWING if settings.get(name)]
    return f"{settings.get('samples', 'default')} samples" + (f", {', '.join(names)} alone" if names else "")


def _newest_pairs(runs: Sequence[Run]) -> list[tuple[Run, Run]]:
    """For each release the newest run with our kernels, and the newest one before it that differs by them alone."""
    newest: dict[object, tuple[Run, Run]] = {}
    for after in sorted(runs, key=lambda run: run.id, reverse=True):
        imports = after.settings.get("imports", [])
        release = (after.settings.get("profile"), after.environment.get("torch"))
        if OURS not in imports or release in newest:
            continue
        alike = after.settings | {"imports": [name for name in imports if name != OURS]}
        earlier = [run for run in runs if run.id < after.id and run.settings == alike]
        if earlier:
            newest[release] = max(earlier, key=lambda run: run.id), after
    return list(newest.values())


def _lacking(summary: AuditSummary) -> list[OverloadSummary]:
    return [
        overload
        for overload in summary.overloads
        if overload.dispatch in (Dispatch.MISSING, Dispatch.ALWAYS_FALLS_BACK)
        and any(overload.cases.get(verdict) for verdict in LACKING)
    ]


def _row_of_overload(before: OverloadSummary, after: OverloadSummary) -> BacklogRow:
    return BacklogRow(
        lacking=sum(before.cases.get(verdict, 0) for verdict in LACKING),
        passed=after.cases.get(CaseVerdict.PASSED, 0),
        left={verdict: after.cases[verdict] for verdict in LEFT if after.cases.get(verdict)},
    )


def family_of(overload: str) -> str:
    """The family whose kernel answers an overload, itself or through the form that torch derives it from, or ""."""
    kernels = catalog.all_kernels()
    operator = overload.split(".")[0]
    exact = [kernel.family for kernel in kernels if kernel.overload == overload]
    alike = [kernel.family for kernel in kernels if kernel.operator.rstrip("_") == operator.rstrip("_")]
    return next(iter(exact + alike), "")
