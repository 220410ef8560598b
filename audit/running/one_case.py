"""Announces a case in a worker, and judges it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..model.verdicts import CaseVerdict, Outcome
from .worker_exit import begin
from .worker_tasks import ON_CPU, Marker

if TYPE_CHECKING:
    from ..model.case import Case
    from .worker_setup import Worker


def judged(worker: Worker, case: Case, label: str, **observers: Any) -> Outcome:
    """The verdict on one case; cases beyond the simulator's limits are skipped. `observers` are passed to `judge`."""
    from ...errors import one_line
    from ..judging.judge import judge
    from ..model.nested import leaves

    case.skipped = case.skipped or worker.device.cannot_run(leaves((case.args, case.kwargs)))
    try:
        outcome = judge(case, worker.device.recorder, worker.options.settings.seed, label, **observers)
    except Exception as error:  # an auditor bug fails one case and is reported
        message = f"not judged, {type(error).__name__}: {one_line(error)}"
        outcome = Outcome(CaseVerdict.REFERENCE_FAILED, "judge", message)
    limit = worker.device.simulator_limit(outcome.message) if outcome.verdict is CaseVerdict.WRONG else ""
    return Outcome(CaseVerdict.SKIPPED, outcome.stage, limit) if limit else outcome


def announce(marker: Marker, position: int, timeout: float, stage: int = ON_CPU) -> None:
    """Announce the next case, and let the system end this process if it takes too long."""
    marker.announce(position, stage)
    begin(timeout)
