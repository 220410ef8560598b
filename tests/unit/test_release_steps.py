"""The steps of a release as one command: built, installed in an empty environment, tried there."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest

from mpsmith import __version__

ROOT = Path(__file__).parents[2]


@pytest.mark.network
@pytest.mark.timeout(1800)  # an environment with nothing in it
def test_a_release_is_built_installed_and_tried() -> None:
    """Its evidence, which is simulated where there is no Mac, is added, shown on the site, and verifies no kernel.

    Packages that it needs are those that are here; what builds it comes from the package index.
    """
    torch = importlib.util.find_spec("torch")
    assert torch is not None
    packages = Path(str(torch.origin)).parents[1]
    environment = {**os.environ, "PYTHON": sys.executable, "PACKAGES_FROM": str(packages)}
    done = subprocess.run([str(ROOT / ".ci" / "package")], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.splitlines()[-1].startswith(f"mpsmith {__version__}: built, installed and tried")


def test_rejects_a_tag_that_is_not_the_version() -> None:
    done = subprocess.run([str(ROOT / ".ci" / "package"), "v999.0"], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert f"the tag is v999.0, but __init__.py says {__version__}" in done.stderr
