"""Reruns a wrong case in its worker: the overload at fault, predictions, ULP sensitivity."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from ..model.launches import grade_of_case
from ..model.verdicts import Grade, Outcome
from .one_case import announce, judged
from .predicting import predictions_of
from .worker_tasks import RERUN, Marker, Task

if TYPE_CHECKING:
    from ..judging.judge import Trial
    from ..model.case import Case
    from .worker_setup import Worker


def predict(worker: Worker, task: Task, position: int, wrong: list[Trial], marker: Marker) -> None:
    """Record which known defects a wrong case has, while its results are in memory; the store already has the case."""
    if not wrong:
        return
    worker.pending.write()
    announce(marker, position, worker.options.settings.timeout, RERUN)
    worker.store.add_predictions(task.group, position, *predictions_of(worker, wrong))


def find_inner_fault(worker: Worker, task: Task, position: int, case: Case, marker: Marker) -> None:
    """Record which inner call of a wrong case is at fault; the store already has the case."""
    from ..judging.inner_calls import fault_inside

    worker.pending.write()
    announce(marker, position, worker.options.settings.timeout, RERUN)
    seed, label = worker.options.settings.seed, f"{task.key.label}:{position}"
    at_fault = fault_inside(case, worker.device.recorder, seed, label)
    worker.pending.add(partial(worker.store.add_inner_fault, task.group, position, at_fault))


def record_ulp_sensitivity(
    worker: Worker, task: Task, position: int, case: Case, kernels: list[str], marker: Marker
) -> None:
    """Record whether a wrong result of these shipped kernels is ULP-sensitive."""
    from ..shipped.case_launches import launches as drained
    from ..shipped.ulp_sensitivity import ulp_sensitivity_of

    assert worker.shipped is not None

    def judge_again() -> tuple[Outcome, Grade | None]:
        announce(marker, position, worker.options.settings.timeout, RERUN)
        drained()
        again = judged(worker, case, f"{task.key.label}:{position}")
        return again, grade_of_case(drained(), again)

    worker.pending.write()
    ulp_sensitivity = ulp_sensitivity_of(worker.shipped, kernels, judge_again)
    if ulp_sensitivity is not None:
        worker.store.add_ulp_sensitivity(task.group, position, ulp_sensitivity)
