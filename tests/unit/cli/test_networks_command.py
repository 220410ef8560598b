"""`mpsmith networks`, as far as it runs nothing."""

from __future__ import annotations

from typing import Any

import pytest

from mpsmith.cli import app
from mpsmith.tracing.networks import running
from mpsmith.tracing.networks.catalog import NETWORKS
from mpsmith.tracing.networks.observation import Called, Mode, Observation, Outcome
from support.commands import output, printed_json, refusal, typed


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["resnet50"], "did you mean resnet-50"),
        (["mlp", "--modes", "trainings"], "did you mean training"),
        (["mlp", "--modes", ""], "--modes has an empty value"),
        (["mlp", "--torch", "9.9.9"], "no data for torch 9.9.9"),
        (["--model", "nothing"], "package.module:function"),
    ],
)
def test_what_makes_no_sense_is_refused_before_anything_runs(arguments: list[str], said: str) -> None:
    assert said in refusal(app, "networks", *arguments)


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[running.Asked]:
    """What a command asks for; each network runs, and calls one operator."""
    all_asked: list[running.Asked] = []

    def observations(asked: running.Asked, **options: Any) -> list[Observation]:
        all_asked.append(asked)
        called = Called(native={"aten::add.Tensor": 1})
        return [
            Observation(
                each.name, mode, Outcome.failed if "bad" in each.name else Outcome.ran, "", "2.13.0", True, called
            )
            for each in asked.networks
            for mode in asked.modes
        ]

    monkeypatch.setattr(running, "observations", observations)
    return all_asked


def test_without_names_all_networks_run_in_all_modes(asked: list[running.Asked]) -> None:
    data = printed_json(app, "networks")
    assert len(data["runs"]) == len(NETWORKS) * len(Mode)
    assert len(data["networks"]) == len(NETWORKS)


def test_a_model_of_ones_own_runs_alone_and_its_failure_is_the_commands(asked: list[running.Asked]) -> None:
    output(app, "networks", "--model", "mine:build", "--modes", "inference,training")
    assert [network.builder for network in asked[0].networks] == ["mine:build"]
    assert asked[0].modes == (Mode.inference, Mode.training)
    assert typed(app, "networks", "--model", "bad:build").exit_code == 1


def test_who_stops_it_is_told_how_it_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    def stopped(asked: running.Asked, **options: Any) -> list[Observation]:
        raise KeyboardInterrupt

    monkeypatch.setattr(running, "observations", stopped)
    result = typed(app, "networks", "mlp")
    assert result.exit_code == 130
    assert "goes on where it was" in result.output
