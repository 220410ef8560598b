"""libtorch reads PYTORCH_ENABLE_MPS_FALLBACK once, as it loads: a worker sets it first, so nothing loads it before."""

from __future__ import annotations

import subprocess
import sys

import pytest


@pytest.mark.parametrize("module", ["audit.running.worker", "cluster.auditing", "cluster.session"])
def test_torch_is_not_loaded_with_what_starts_workers(module: str) -> None:
    program = f"import sys, mpsmith.{module}; print('torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"
