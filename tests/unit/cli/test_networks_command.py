"""`mpsmith networks`, as far as it runs nothing."""

from __future__ import annotations

from typing import Any

import pytest

from mpsmith.cli import app
from mpsmith.tracing.networks import running
from mpsmith.tracing.networks.catalog import NETWORKS
from mpsmith.tracing.networks.observation import Called, Mode, NetworkObservation, NetworkOutcome
from support.commands import output, printed_json, refusal, typed


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["resnet50"], "did you mean resnet-50"),
        (["mlp", "--modes", "trainings"], "did you mean training"),
        (["mlp", "--modes", ""], "--modes has an empty value"),
        (["mlp", "--torch", "9.9.9"], "no data for torch 9.9.9"),
        (["nothing:"], "package.module:function"),
    ],
)
def test_rejects_bad_arguments(arguments: list[str], message: str) -> None:
    assert message in refusal(app, "networks", *arguments)


@pytest.fixture
def asked_for(monkeypatch: pytest.MonkeyPatch) -> list[running.RunOptions]:
    """What a command asks for; each network runs, and calls one operator."""
    all_options: list[running.RunOptions] = []

    def observations(asked: running.RunOptions, **options: Any) -> list[NetworkObservation]:
        all_options.append(asked)
        called = Called(native={"aten::add.Tensor": 1})
        return [
            NetworkObservation(
                network.name,
                mode,
                NetworkOutcome.failed if "bad" in network.name else NetworkOutcome.ran,
                "",
                "2.13.0",
                True,
                called,
            )
            for network in asked.networks
            for mode in asked.modes
        ]

    monkeypatch.setattr(running, "observations", observations)
    return all_options


def test_without_names_all_networks_run_in_all_modes(asked_for: list[running.RunOptions]) -> None:
    data = printed_json(app, "networks")
    assert len(data["runs"]) == len(NETWORKS) * len(Mode)
    assert len(data["networks"]) == len(NETWORKS)


def test_a_users_model_runs_alone_and_its_failure_fails_the_command(asked_for: list[running.RunOptions]) -> None:
    output(app, "networks", "mine:build", "--modes", "inference,training")
    assert [network.builder for network in asked_for[0].networks] == ["mine:build"]
    assert asked_for[0].modes == (Mode.inference, Mode.training)
    assert typed(app, "networks", "bad:build").exit_code == 1


def test_a_stopped_run_says_how_to_continue(monkeypatch: pytest.MonkeyPatch) -> None:
    def stopped(asked: running.RunOptions, **options: Any) -> list[NetworkObservation]:
        raise KeyboardInterrupt

    monkeypatch.setattr(running, "observations", stopped)
    result = typed(app, "networks", "mlp")
    assert result.exit_code == 130
    assert "continues where it was" in result.output
