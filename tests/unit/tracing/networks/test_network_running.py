"""What an earlier run knows of networks is not run again, unless a library was not installed then."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from mpsmith.tracing.networks import catalog, running
from mpsmith.tracing.networks.catalog import Network
from mpsmith.tracing.networks.observation import Mode, NetworkObservation, NetworkOutcome


def test_runs_networks_again_that_were_not_installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    networks = catalog.networks_named(["bert", "mlp"])
    tried: list[str] = []
    bert = NetworkOutcome.not_installed

    def observed(
        _asked: running.RunOptions, tasks: Sequence[tuple[Network, Mode]]
    ) -> Iterator[tuple[Network, NetworkObservation]]:
        for network, mode in tasks:
            tried.append(network.name)
            yield (
                network,
                NetworkObservation(network.name, mode, bert if network.name == "bert" else NetworkOutcome.ran),
            )

    monkeypatch.setattr(running, "_observed", observed)
    options = running.RunOptions(networks, [Mode.inference])
    running.observations(options, folder=tmp_path)
    bert = NetworkOutcome.ran
    assert {seen.outcome for seen in running.observations(options, folder=tmp_path)} == {NetworkOutcome.ran}
    assert sorted(tried) == ["bert", "bert", "mlp"]
