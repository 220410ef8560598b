"""A pytest plugin, for the tests of a patch: the simulated device, with the patch's kernels on it before any test.

MPSMITH_PATCH='{"library": ..., "overloads": [...]}' python -m pytest TESTS -p mpsmith.scaffold.patched_device
"""

from __future__ import annotations

import json
import os
from pathlib import Path

from ..simulator.objc.loading import load_extension
from .conformance import device_without
from .patched_tree import LIBRARY


def pytest_configure() -> None:
    """Load both. The device has no kernels of its own for what the patch registers."""
    patch = json.loads(os.environ[LIBRARY])
    device_without(*patch["overloads"])
    load_extension(Path(patch["library"]))
