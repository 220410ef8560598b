"""Tries the models of known defects on a wrong case, in the worker that has its results."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ..judging.judge import Trial
    from .worker_setup import Worker


def predictions_of(worker: Worker, wrong: list[Trial]) -> dict[str, float]:
    """The predictions that the first of these trials fits, as the store has them; none where there is no trial."""
    if not wrong:
        return {}
    from ..judging.predictions import OF_HOST_CODE, PREDICTIONS
    from ..judging.predictions.fitting import fitting_predictions

    return fitting_predictions(wrong[0], PREDICTIONS + (OF_HOST_CODE if worker.runs_host_code else ()))
