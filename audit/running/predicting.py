"""Tries the models of known defects on a wrong case, in the worker that has its results."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ..judging.judge import Trial
    from .worker_setup import Worker


def predictions_of(worker: Worker, wrong: list[Trial]) -> tuple[dict[str, float], str]:
    """The predictions that the first of these trials fits, and a note; both are empty if there is no trial.

    If a model raises, no prediction is returned, so that no rule explains the case, and the note is the error.
    """
    if not wrong:
        return {}, ""
    from ...errors import one_line
    from ..judging.predictions import OF_HOST_CODE, PREDICTIONS
    from ..judging.predictions.fitting import fitting_predictions
    from ..judging.predictions.prediction import ModelError

    try:
        return fitting_predictions(wrong[0], PREDICTIONS + (OF_HOST_CODE if worker.runs_host_code else ())), ""
    except ModelError as error:
        return {}, str(error)
    except Exception as error:  # an auditor bug fails one case and is reported
        return {}, f"no prediction was tried: {type(error).__name__}: {one_line(error)}"
