"""The simulated device for the tests of this folder: one coverage profile a process, that of the installed torch."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from collections.abc import Callable, Iterator

import pytest

from mpsmith.audit.releases.surface.profiles import coverage_profile
from mpsmith.simulator import metal
from mpsmith.simulator.device import faults
from mpsmith.simulator.device import loading as device
from mpsmith.simulator.device.coverage_profile import CoverageProfile
from support.needs import needs_simulated_device

FreshPython = Callable[..., subprocess.CompletedProcess[str]]
WITH_KERNELS = """
import sys
import torch
from mpsmith.audit.releases.surface.profiles import coverage_profile
from mpsmith.simulator import metal
from mpsmith.simulator.device import loading as device
device.load(coverage_profile({profile!r}))
metal.install()
import mpsmith.kernels as kernels
"""


@pytest.fixture(scope="session", autouse=True)
def simulated_device() -> CoverageProfile:
    """The simulated device with the coverage of the installed torch, missing operators refused."""
    needs_simulated_device()
    installed = coverage_profile(None)
    os.environ.pop(device.FALLBACK_VARIABLE, None)
    device.load(installed)
    return installed


@pytest.fixture
def fallback_enabled() -> Iterator[None]:
    """Missing operators run on the CPU, for one test."""
    device.set_fallback_enabled(True)
    yield
    device.set_fallback_enabled(False)


@pytest.fixture
def no_faults() -> Iterator[None]:
    """Whatever faults a test puts into the device are gone after it."""
    faults.clear()
    yield
    faults.clear()


@pytest.fixture
def nothing_registered() -> Iterator[None]:
    """Shaders compile, and no kernel of mpsmith answers but those that the test registers."""
    from mpsmith import kernels  # registers them, which tests of other folders do not ask for

    metal.install()
    with kernels.use():
        yield


@pytest.fixture(scope="session")
def fresh_python() -> FreshPython:
    """Runs a script in a separate interpreter, for what needs another profile or environment.

    `fresh_python(script, NAME="value", ...)` sets the variables (None removes one) and returns the finished process,
    which failed unless the test says `check=False`. With `kernels_on`, a release or `installed`, the script begins on
    the simulated device with its coverage, and our kernels are registered.
    """

    def run(
        script: str, check: bool = True, kernels_on: str = "", **variables: str | None
    ) -> subprocess.CompletedProcess[str]:
        script = textwrap.dedent(script)
        if kernels_on:
            script = WITH_KERNELS.format(profile=None if kernels_on == "installed" else kernels_on) + script
        environment = {name: value for name, value in os.environ.items() if name != device.FALLBACK_VARIABLE}
        for name, value in variables.items():
            environment.pop(name, None)
            if value is not None:
                environment[name] = value
        done = subprocess.run(
            [sys.executable, "-c", script], env=environment, capture_output=True, text=True, timeout=300, check=False
        )
        if check:
            assert done.returncode == 0, done.stderr
        return done

    return run
