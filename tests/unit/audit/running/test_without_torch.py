"""libtorch reads PYTORCH_ENABLE_MPS_FALLBACK once, as it loads: a worker sets it first, so nothing loads it before."""

from __future__ import annotations

import pickle
import subprocess
import sys

import pytest

from mpsmith.audit.running.environment import environment
from mpsmith.simulator.fallback_recorders import CounterRecorder
from mpsmith.simulator.opening import MpsDevice


@pytest.mark.parametrize("module", ["audit.running.worker", "audit.running.cluster", "audit.running.cluster_task"])
def test_starting_workers_does_not_load_torch(module: str) -> None:
    program = f"import sys, mpsmith.{module}; print('torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"


def test_unpickling_an_environment_does_not_load_torch() -> None:
    described = environment(MpsDevice(True, "2.13.0", CounterRecorder()))
    program = f"import pickle, sys; pickle.loads({pickle.dumps(described)!r}); print('torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"
