"""What torch lacks on mps, overload by overload, and what of it remains with our kernels, from audits with both.

`mpsmith audit --with-kernels` leaves two runs in a store, the second of which imported `mpsmith.kernels`. An overload
is in the backlog if the first run fell back to the CPU for it or it was refused there.
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
        lacking: how many cases fell back or were refused without our kernels.
        passed: how many cases that called it passed with them.
        left: how many cases did not pass with them, by verdict.
    """

    lacking: int
    passed: int
    left: Mapping[CaseVerdict, int]


@dataclass(frozen=True)
class Backlog:
    """The results of the audits of one release.

    Attributes:
        release: the release whose coverage the device had.
        simulated: whether the device was the simulated one.
        selection: which cases were run.
        executed: how many cases the device executed with our kernels.
        overloads: the rows by name of the overload.
        explanation: which rules explain the non-passes with our kernels, for all audited overloads.
    """

    release: str
    simulated: bool
    selection: str
    executed: int
    overloads: Mapping[str, BacklogRow]
    explanation: Explanation

    @property
    def left(self) -> tuple[str, ...]:
        """The overloads that still fall back or are refused in some case."""
        return tuple(name for name, row in self.overloads.items() if any(row.left.get(verdict) for verdict in LACKING))


def backlogs_of(path: Path) -> list[Backlog]:
    """For each release in a store, the backlog of its newest audit with kernels, the oldest release first.

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
    """A text that says how the cases were selected."""
    names = [f"{len(settings[name])} {name}" for name in NARROWING if settings.get(name)]
    return f"{settings.get('samples', 'default')} samples" + (f", {', '.join(names)} alone" if names else "")


def _newest_pairs(runs: Sequence[Run]) -> list[tuple[Run, Run]]:
    """For each release, the newest run with our kernels, and the newest earlier run that only lacks them."""
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
    """The family that implements an overload, or the form that torch derives it from; "" if there is none."""
    kernels = catalog.all_kernels()
    operator = overload.split(".")[0]
    exact = [kernel.family for kernel in kernels if kernel.overload == overload]
    alike = [kernel.family for kernel in kernels if kernel.operator.rstrip("_") == operator.rstrip("_")]
    return next(iter(exact + alike), "")
