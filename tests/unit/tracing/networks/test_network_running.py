"""What an earlier run knows of networks is not run again, unless a library was not installed then."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from mpsmith.tracing.networks import catalog, running
from mpsmith.tracing.networks.catalog import Network
from mpsmith.tracing.networks.observation import Mode, Observation, Outcome


def test_runs_networks_again_that_were_not_installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    networks = catalog.networks_named(["bert", "mlp"])
    tried: list[str] = []
    bert = Outcome.not_installed

    def observed(
        _asked: running.RunOptions, tasks: Sequence[tuple[Network, Mode]]
    ) -> Iterator[tuple[Network, Observation]]:
        for network, mode in tasks:
            tried.append(network.name)
            yield network, Observation(network.name, mode, bert if network.name == "bert" else Outcome.ran)

    monkeypatch.setattr(running, "_observed", observed)
    options = running.RunOptions(networks, [Mode.inference])
    running.observations(options, folder=tmp_path)
    bert = Outcome.ran
    assert {each.outcome for each in running.observations(options, folder=tmp_path)} == {Outcome.ran}
    assert sorted(tried) == ["bert", "bert", "mlp"]
