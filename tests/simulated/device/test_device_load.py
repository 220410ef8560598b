"""Loading the simulated device: once, one profile a process, and only where it belongs."""

from __future__ import annotations

import dataclasses

import pytest
import torch

from mpsmith.simulator.device import loading as device
from mpsmith.simulator.device.coverage_profile import CoverageProfile
from mpsmith.simulator.errors import SimulatorError

from ..conftest import FreshPython

INSTALLED = f"loaded {torch.__version__.split('+')[0]}"
LOAD = """
import torch
from mpsmith.audit.releases.surface.profiles import coverage_profile
from mpsmith.simulator.device import loading as device
from mpsmith.simulator.errors import SimulatorError
def load(release=None):
    try:
        device.load(coverage_profile(release))
        print("loaded", device.loaded_profile().release)
    except SimulatorError as error:
        print(error)
"""


def test_the_device_has_the_real_names_and_keys() -> None:
    x = torch.ones(2, requires_grad=True, device="mps")
    keys = torch._C._dispatch_keys(x)
    assert x.device == torch.device("mps", 0)
    assert x.is_mps
    assert keys.has(torch._C.DispatchKey.MPS)
    assert keys.has(torch._C.DispatchKey.AutogradMPS)
    assert torch.backends.mps.is_built()
    assert torch.backends.mps.is_available()
    assert torch.mps.device_count() == 1
    assert torch.accelerator.current_accelerator() == torch.device("mps")


def test_loading_an_equal_profile_again_does_nothing(simulated_device: CoverageProfile) -> None:
    device.load(dataclasses.replace(simulated_device))
    assert device.is_loaded()
    assert device.loaded_profile() == simulated_device


def test_another_profile_needs_another_process(simulated_device: CoverageProfile) -> None:
    other = dataclasses.replace(simulated_device, release="1.0", native=frozenset())
    with pytest.raises(SimulatorError, match=r"loaded with the coverage of .*; start another process for that of 1\.0"):
        device.load(other)
    assert device.loaded_profile() == simulated_device


def test_a_release_whose_kernels_this_torch_has_too_loads_without_a_warning(fresh_python: FreshPython) -> None:
    done = fresh_python(LOAD + "load('2.15.0')")
    assert (done.stdout, done.stderr) == ("loaded 2.15.0\n", "")


def test_without_loading_there_is_a_clear_error(fresh_python: FreshPython) -> None:
    done = fresh_python(
        """
        from mpsmith.simulator.device import loading as device
        from mpsmith.simulator.errors import SimulatorError
        print(device.is_loaded(), device.loaded_profile())
        try:
            device.counters()
        except SimulatorError as error:
            print(error)
        """
    )
    assert done.stdout.splitlines() == [
        "False None",
        "the simulated mps device is not loaded in this process; call load() first",
    ]


def test_a_torch_of_a_mac_is_left_alone(fresh_python: FreshPython) -> None:
    done = fresh_python(LOAD + "torch._C._has_mps = True\nload()")
    assert done.stdout.strip() == "this torch is built with mps, for a Mac; mps is simulated on Linux only"


def test_an_old_torch_is_refused(fresh_python: FreshPython) -> None:
    done = fresh_python(LOAD + "import unittest.mock\nwith unittest.mock.patch('torch.__version__', '2.6.1'): load()")
    assert done.stdout.strip() == "the simulated mps device needs torch 2.7 or newer, not 2.6.1"


def test_after_a_backward_it_is_too_late_and_nothing_has_changed(fresh_python: FreshPython) -> None:
    done = fresh_python(
        LOAD
        + """
x = torch.ones(2, requires_grad=True)
x.sum().backward()
load()
print(torch.backends.mps.is_available(), device.is_loaded())
x.sum().backward()
print(x.grad.tolist())
"""
    )
    refusal, *rest = done.stdout.splitlines()
    assert refusal.startswith("a backward has run in this process already")
    assert rest == ["False False", "[2.0, 2.0]"]


def test_a_build_for_cuda_is_named_where_autograd_does_not_take_the_device(fresh_python: FreshPython) -> None:
    done = fresh_python(
        LOAD
        + """
torch.ones(2, requires_grad=True).sum().backward()  # such a build refuses every backward on mps, and this one now
torch.version.cuda = "13.2"
load()
"""
    )
    assert "is built for CUDA" in done.stdout
    assert "--extra-index-url https://download.pytorch.org/whl/cpu" in done.stdout


def test_loads_after_a_graph_without_a_backward(fresh_python: FreshPython) -> None:
    done = fresh_python(
        LOAD
        + """
y = torch.ones(2, requires_grad=True) * 2
load()
x = torch.ones(2, requires_grad=True, device="mps")
x.sum().backward()
print(x.grad.tolist())
"""
    )
    assert done.stdout.splitlines() == [INSTALLED, "[1.0, 1.0]"]


def test_somebody_may_have_asked_for_mps_before(fresh_python: FreshPython) -> None:
    """torch caches its answer, and the stub that gave it, for good."""
    done = fresh_python(
        LOAD
        + """
print(torch.backends.mps.is_available())
torch.manual_seed(0)
load()
print(torch.backends.mps.is_available(), torch.mps.current_allocated_memory())
"""
    )
    assert done.stdout.splitlines() == ["False", INSTALLED, "True 0"]


def test_ending_right_after_a_backward_does_not_abort(fresh_python: FreshPython) -> None:
    """cpp_extension leaves a python object in the thread state, which the device's thread must let go of in time."""
    script = LOAD + "import torch.utils.cpp_extension\nload()\n"
    script += "torch.ones(2, requires_grad=True, device='mps').sum().backward()"
    for _ in range(2):
        assert fresh_python(script).returncode == 0


def test_a_forked_child_can_use_the_device(fresh_python: FreshPython) -> None:
    done = fresh_python(
        LOAD
        + """
import os
load()
x = torch.ones(3, device="mps", requires_grad=True)
child = os.fork()
if not child:
    (x * 2).sum().backward()
    os._exit(int(x.grad.sum().item()))
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""
    )
    assert done.stdout.splitlines() == [INSTALLED, "6"]


@pytest.mark.parametrize("text", ["yes", "", "1.5"])
def test_rejects_a_fallback_variable_that_is_not_a_number(fresh_python: FreshPython, text: str) -> None:
    script = """
        from mpsmith.simulator.device import loading as device
        from mpsmith.simulator.device.coverage_profile import CoverageProfile
        try:
            device.load(CoverageProfile("0.0", frozenset(), frozenset(), frozenset()))
        except device.SimulatorError as error:
            print(error)
        """
    done = fresh_python(script, PYTORCH_ENABLE_MPS_FALLBACK=text)
    assert done.stdout.strip() == f"PYTORCH_ENABLE_MPS_FALLBACK should be 0 or 1, not {text!r}"


def test_a_profile_decides_which_operators_are_native(fresh_python: FreshPython) -> None:
    done = fresh_python(
        LOAD
        + """
load("2.0.1")
x = torch.ones(2, device="mps")
for operator in (torch.relu, torch.nn.functional.softshrink, torch.erfinv):
    try:
        operator(x)
        print("native")
    except NotImplementedError as error:
        print(str(error).split("'")[1])
"""
    )
    assert done.stdout.splitlines() == ["loaded 2.0.1", "native", "aten::softshrink.out", "aten::erfinv.out"]


def test_a_profile_of_a_newer_release_may_name_operators_unknown_here(fresh_python: FreshPython) -> None:
    assert fresh_python(LOAD + "load('2.15.0')").stdout.strip() == "loaded 2.15.0"
