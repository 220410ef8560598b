"""These tests say something about Apple's GPUs, so they run on a real mps device or not at all."""

import os

# Read once, when libtorch loads: before any test imports torch.
os.environ.setdefault("PYTORCH_ENABLE_MPS_FALLBACK", "1")

import pytest
import torch


@pytest.fixture(autouse=True)
def real_mps() -> None:
    if not torch.backends.mps.is_available():
        pytest.skip("this machine has no mps device")
