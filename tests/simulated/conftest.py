"""The simulated device for the tests of this folder: one coverage profile a process, that of the installed torch."""

from __future__ import annotations

from pathlib import Path

import pytest
import torchgen
import yaml

from mpsmith.simulator import device
from mpsmith.simulator.coverage_profile import CoverageProfile

ALWAYS_FALLBACK = frozenset({"embedding_renorm_", "linalg_svd", "linalg_svd.U", "upsample_nearest3d.vec"})


def installed_profile(without: frozenset[str] = frozenset()) -> CoverageProfile:
    """The coverage that the installed torch's native_functions.yaml lists, less the overloads `without`."""
    import torch

    path = Path(torchgen.__file__).parent / "packaged/ATen/native/native_functions.yaml"
    functions = yaml.load(path.read_text(), yaml.CSafeLoader)
    delegates = {}
    covered: dict[str, set[str]] = {"MPS": set(), "SparseMPS": set()}
    for function in functions:
        name = function["func"].split("(")[0]
        delegates[name] = function.get("structured_delegate")
        keys = {key.strip() for joined in function.get("dispatch", {}) for key in joined.split(",")}
        for key, names in covered.items():
            if key in keys:
                names.add(name)
    native = covered["MPS"] | {name for name, out in delegates.items() if out in covered["MPS"]}
    return CoverageProfile(
        release=torch.__version__.split("+")[0],
        native=frozenset(native - without),
        sparse=frozenset(covered["SparseMPS"]),
        always_fallback=ALWAYS_FALLBACK,
    )


@pytest.fixture(scope="session", autouse=True)
def simulated_device() -> CoverageProfile:
    profile = installed_profile()
    device.load(profile)
    return profile
