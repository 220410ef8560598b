"""Networks on the simulated device: what they call, what the release data say of it, and runs that end badly."""

from __future__ import annotations

import sys
import textwrap
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest
import torch
from torch import nn

from mpsmith.errors import MpsmithError
from mpsmith.tracing.networks import running, workload
from mpsmith.tracing.networks.catalog import NETWORKS, Network, networks_named, user_network
from mpsmith.tracing.networks.execution import observe
from mpsmith.tracing.networks.observation import Mode, NetworkOutcome
from mpsmith.tracing.networks.release_support import network_support
from mpsmith.tracing.process import TracedDevice

OF_TORCH = [network for network in NETWORKS if not network.library]


@pytest.fixture
def opened(simulated_device: object, fallback_enabled: None) -> Iterator[TracedDevice]:
    """The device, with no kernel of ours on it."""
    from mpsmith import kernels
    from mpsmith.simulator.opening import DeviceKind

    with kernels.use():
        yield TracedDevice.of(DeviceKind.AUTO, None)


@pytest.mark.parametrize("network", OF_TORCH, ids=lambda network: network.name)
def test_fallbacks_of_a_network_agree_with_the_release_data(network: Network, opened: TracedDevice) -> None:
    seen = [observe(network, mode, opened) for mode in (Mode.inference, Mode.training)]
    assert {(observation.outcome, observation.reason) for observation in seen} == {(NetworkOutcome.ran, "")}
    (joined,) = network_support(seen, ())
    for observation in seen:
        on = joined.by_mode[observation.mode][joined.recorded]
        assert on.lacking == set(observation.called.fell_back)
        assert not on.unknown


def test_the_networks_of_libraries_run_where_these_are_installed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    networks = networks_named(["vision-transformer", "bert", "stable-diffusion-unet"])
    installed = [network for network in networks if find_spec(network.library)]
    if not installed:
        pytest.skip("none of timm, transformers and diffusers is installed: pip install 'mpsmith[networks]'")
    clone = Path(running.__file__).parents[2]
    monkeypatch.syspath_prepend(clone)  # as `python -m mpsmith` in a clone has it
    seen = running.observations(running.RunOptions(installed, [Mode.inference], workers=1), folder=tmp_path)
    assert {(observation.outcome, observation.reason) for observation in seen} == {(NetworkOutcome.ran, "")}


def test_kernels_replace_fallbacks(opened: TracedDevice) -> None:
    (network,) = networks_named(["ctc-speech"])
    seen = observe(network, Mode.training, opened)
    assert set(seen.called.fell_back) == {"aten::_ctc_loss", "aten::_ctc_loss_backward"}
    assert seen.with_kernels is not None
    assert seen.with_kernels.fell_back == {}
    assert seen.kernels_reason == ""


def test_the_convolutions_are_those_of_a_mac(opened: TracedDevice) -> None:
    (network,) = networks_named(["gan"])
    called = observe(network, Mode.training, opened).called.overloads
    assert {"aten::_mps_convolution", "aten::_mps_convolution_transpose", "aten::mps_convolution_backward"} <= called
    assert not {name for name in called if "overrideable" in name}


def test_a_compiled_network_is_compiled(opened: TracedDevice) -> None:
    seen = observe(networks_named(["softshrink"])[0], Mode.compile, opened)
    assert (seen.outcome, seen.breaks) == (NetworkOutcome.ran, ())
    assert seen.generated > 0
    assert "aten::softshrink.out" not in seen.called.overloads


OWN = """
import os, sys, time
import torch
from torch import nn

def good():
    return nn.Sequential(nn.Linear(3, 3), nn.Softshrink()), torch.rand(2, 3)

def raises():
    return nn.Linear(3, 3), torch.rand(2, 4)

def ends():
    sys.exit("never mind")

def lacks():
    import a_library_that_is_not_there

def aborts():
    os.abort()
"""


@pytest.fixture
def own_models(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder with a module of models, from which the command is run."""
    (tmp_path / "own_models.py").write_text(textwrap.dedent(OWN))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))


@pytest.mark.usefixtures("own_models")
def test_a_network_that_ends_its_process_costs_itself_alone(tmp_path: Path) -> None:
    networks = [user_network(f"own_models:{name}") for name in ("raises", "ends", "lacks", "aborts", "good")]
    reports: list[tuple[str, int]] = []
    options = running.RunOptions(networks, [Mode.inference], workers=1)
    seen = running.observations(
        options, folder=tmp_path, report=lambda observation, left: reports.append((observation.network, left))
    )
    raised, ended, lacking, aborted, good = seen
    assert raised.outcome is NetworkOutcome.failed
    assert "shapes cannot be multiplied" in raised.reason
    assert (ended.outcome, ended.reason) == (NetworkOutcome.failed, "building it: SystemExit: never mind")
    assert lacking.outcome is NetworkOutcome.not_installed
    assert "a_library_that_is_not_there" in lacking.reason
    assert (aborted.outcome, aborted.reason) == (NetworkOutcome.died, "SIGABRT")
    assert (good.outcome, good.called.fell_back) == (NetworkOutcome.ran, {})
    assert "aten::softshrink" in good.called.native
    assert {name for name, _ in reports} == {observation.network for observation in seen}
    assert [left for _, left in reports] == [4, 3, 2, 1, 0]


@pytest.mark.usefixtures("own_models")
@pytest.mark.parametrize(
    ("builder", "message"),
    [("own_models:nothing", "has no function nothing"), ("no_such_module:build", "No module named 'no_such_module'")],
)
def test_rejects_a_missing_builder(builder: str, message: str) -> None:
    with pytest.raises(MpsmithError, match=message):
        workload.build(builder)


def test_a_loss_needs_something_to_train() -> None:
    with pytest.raises(MpsmithError, match="nothing to train"):
        workload.mean_of_outputs(nn.Identity(), torch.rand(2))


def test_the_same_weights_and_inputs_each_time() -> None:
    first, second = (workload.build(OF_TORCH[0].builder) for _ in range(2))
    assert torch.equal(first.inputs[0], second.inputs[0])
    assert torch.equal(next(first.model.parameters()), next(second.model.parameters()))
