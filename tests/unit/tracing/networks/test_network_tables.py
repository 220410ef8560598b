"""What is shown of networks: the tables, the page, the JSON, and what is kept of a run."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from mpsmith.errors import MpsmithError
from mpsmith.reports.pages import PAGES, PageInputs
from mpsmith.simulator.opening import DeviceKind
from mpsmith.tracing.networks import output, tables
from mpsmith.tracing.networks.catalog import NETWORKS, networks_named, user_network
from mpsmith.tracing.networks.observation import Called, Mode, NetworkObservation, NetworkOutcome
from mpsmith.tracing.networks.observation_cache import ObservationCache
from mpsmith.tracing.networks.release_support import network_support

LACKING = NetworkObservation(
    network="mlp",
    mode=Mode.inference,
    outcome=NetworkOutcome.ran,
    release="2.13.0",
    called=Called({"aten::add.Tensor": 3}, {"aten::_ctc_loss": 2}, ("aten::mode",)),
    with_kernels=Called({"aten::_ctc_loss": 2}),
    seconds=1.5,
)
COMPILED = NetworkObservation(
    "mlp", Mode.compile, NetworkOutcome.ran, release="2.13.0", generated=4, breaks=("a branch",), called=Called()
)
FAILED = NetworkObservation("gru", Mode.training, NetworkOutcome.failed, "RuntimeError: no", release="2.13.0")
ABSENT = [
    NetworkObservation(name, Mode.inference, NetworkOutcome.not_installed, "needs timm: install it")
    for name in ("a", "b")
]


def test_an_observation_goes_through_json() -> None:
    for observation in (LACKING, COMPILED, FAILED):
        assert NetworkObservation.from_json(json.loads(json.dumps(observation.to_json()))) == observation


def test_a_row_has_the_first_release_of_each_mode() -> None:
    table = tables.since_which_release(network_support([LACKING, COMPILED], {"aten::_ctc_loss"}))
    (row,) = table.rows
    cells = dict(zip(table.columns, row, strict=True))
    assert cells["inference"] == "2.14.1"
    assert cells["training"] == "-"
    assert cells["torch.compile"] == "none on 2.13.0"
    assert cells["all with kernels"] == "2.7.1"


def test_a_run_names_inner_waits() -> None:
    masked = replace(LACKING, called=Called({"aten::masked_select": 2, "aten::add.Tensor": 1}))
    assert [row[5] for row in tables.runs([LACKING, masked, replace(masked, release="2.12.1")]).rows] == [
        *("", "aten::masked_select", "")
    ]


def test_the_operators_that_are_lacking_name_their_releases_and_networks() -> None:
    joined = network_support([LACKING], {"aten::_ctc_loss"})
    (row,) = tables.lacking_operators(joined).rows
    assert row == ("aten::_ctc_loss", "1.12.1 to 2.13.0", "yes", "mlp", "Upgrade to torch 2.14.1")
    assert tables.lacking_operators(joined, "2.14.1").rows == ()
    kernels_by_release = dict(
        zip(*(lambda table: (table.columns, table.rows[0]))(tables.kernels_by_release(joined)), strict=True)
    )
    assert (kernels_by_release["2.6.0"], kernels_by_release["2.13.0"], kernels_by_release["2.14.1"]) == (
        "1",
        "1 > 0",
        "0",
    )


def test_lists_each_reason_for_not_running_once() -> None:
    observations = [LACKING, FAILED, *ABSENT]
    assert tables.not_run(observations).rows == (
        ("gru, training", "failed", "RuntimeError: no"),
        ("a, b", "not run", "needs timm: install it"),
    )
    shown = output.as_text(network_support(observations, ()), observations, None)
    assert shown.endswith("gru, training: failed: RuntimeError: no\na, b: not run: needs timm: install it")


def test_text_and_json_hold_the_same() -> None:
    observations = [LACKING, COMPILED, FAILED]
    joined = network_support(observations, {"aten::_ctc_loss"})
    shown = output.as_text(joined, observations, "2.13.0")
    data = output.to_json(joined, observations)
    for form in (shown, json.dumps(data)):
        assert "SIMULATED" in form
        assert "aten::_ctc_loss" in form
        assert "RuntimeError: no" in form
    (network,) = data["networks"]
    assert network["releases"]["inference"]["2.13.0"]["replaced_by_kernels"] == ["aten::_ctc_loss"]
    assert network["without_fallback_since"]["inference"] == {"release": "2.14.1", "at_latest": False}
    assert [NetworkObservation.from_json(run) for run in data["runs"]] == observations
    assert "torch 2.14.1 has a kernel for every overload" in output.as_text(joined, observations, "2.14.1")


def test_the_page_of_networks_is_made_from_the_json(tmp_path: Path) -> None:
    observations = [LACKING, COMPILED, FAILED]
    file = tmp_path / "networks.json"
    file.write_text(json.dumps(output.to_json(network_support(observations, ()), observations)))
    page = PAGES["networks"].markdown(PageInputs(networks=file))
    assert page.startswith("# Networks, release by release\n\n1 networks, 2 runs with torch 2.13.0 on the SIMULATED")
    assert "| `aten::_ctc_loss` | 1.12.1 to 2.13.0 |" in page


def answers(folder: Path) -> ObservationCache:
    return ObservationCache(DeviceKind.AUTO.value, None, folder)


def test_the_next_run_uses_a_cached_observation(tmp_path: Path) -> None:
    (network,) = networks_named(["mlp"])
    kept = answers(tmp_path)
    kept.add(network, LACKING)
    kept.path.write_text(kept.path.read_text() + '{"key": "cut')
    again = answers(tmp_path)
    assert again.get(network, Mode.inference) == LACKING
    assert again.get(network, Mode.training) is None


@pytest.mark.parametrize("outcome", [NetworkOutcome.timeout, NetworkOutcome.died])
def test_does_not_cache_timeouts_and_crashes(tmp_path: Path, outcome: NetworkOutcome) -> None:
    (network,) = networks_named(["mlp"])
    answers(tmp_path).add(network, NetworkObservation("mlp", Mode.inference, outcome))
    assert answers(tmp_path).get(network, Mode.inference) is None


def test_a_network_of_the_users_own_is_run_each_time(tmp_path: Path) -> None:
    network = user_network("model:build")
    answers(tmp_path).add(network, NetworkObservation("model:build", Mode.inference, NetworkOutcome.ran))
    assert answers(tmp_path).get(network, Mode.inference) is None


def test_names_of_networks_are_unique_and_unknown_ones_are_rejected() -> None:
    assert len({network.name for network in NETWORKS}) == len(NETWORKS)
    with pytest.raises(MpsmithError, match=r"there is no network lst.*lstm"):
        networks_named(["lst"])
    with pytest.raises(MpsmithError, match=r"model\.build: name a function"):
        user_network("model.build")
