"""Which models of known defects a worker tries on a wrong case."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

import pytest

from mpsmith.audit.judging import predictions
from mpsmith.audit.judging.predictions import fitting
from mpsmith.audit.judging.predictions.prediction import ModelError
from mpsmith.audit.running.predicting import predictions_of
from mpsmith.audit.running.worker_setup import Worker


@pytest.mark.parametrize(
    ("host_code", "simulated", "tried"),
    [(None, True, {"any"}), ("a release", True, {"any", "graph"}), (None, False, {"any", "graph"})],
)
def test_models_of_host_code_are_tried_where_host_code_computes(
    monkeypatch: pytest.MonkeyPatch, host_code: str | None, simulated: bool, tried: set[str]
) -> None:
    monkeypatch.setattr(predictions, "PREDICTIONS", (predictions.Prediction("any"),))
    monkeypatch.setattr(predictions, "OF_HOST_CODE", (predictions.Prediction("graph"),))
    monkeypatch.setattr(fitting, "fitting_predictions", lambda trial, models: {model.name: 0.0 for model in models})
    fields: dict[str, Any] = dict.fromkeys(("options", "sources", "store", "shipped", "pending"))
    worker = Worker(**fields, host_code=host_code, device=SimpleNamespace(simulated=simulated))  # type: ignore[arg-type]
    fits, note = predictions_of(worker, ["a trial"])  # type: ignore[list-item]
    assert (set(fits), note) == (tried, "")
    assert predictions_of(worker, []) == ({}, "")


@pytest.mark.parametrize(
    ("error", "note"),
    [
        (ModelError("the model 'any' raises"), "the model 'any' raises"),
        (KeyError("a flaw"), "no prediction was tried: KeyError: 'a flaw'"),
    ],
)
def test_an_error_while_predicting_is_a_note_about_the_case(
    monkeypatch: pytest.MonkeyPatch, error: Exception, note: str
) -> None:
    monkeypatch.setattr(fitting, "fitting_predictions", Mock(side_effect=error))
    worker: Any = SimpleNamespace(runs_host_code=False)
    assert predictions_of(worker, ["a trial"]) == ({}, note)  # type: ignore[list-item]
