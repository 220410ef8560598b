"""What fresh memory of the simulated device holds."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch

from mpsmith.simulator.device import loading as device

from ..conftest import FreshPython

LOADED_IN = """
import torch
from mpsmith.audit.releases.surface.profiles import coverage_profile
from mpsmith.simulator.device import loading as device
device.load(coverage_profile(None))
print(int(torch.empty(2**20, device="mps").isnan().sum()))
"""


@pytest.fixture
def filled() -> Iterator[None]:
    device.fill_fresh_memory(True)
    yield
    device.fill_fresh_memory(False)


@pytest.mark.usefixtures("filled")
def test_uninitialized_memory_is_filled_with_nan() -> None:
    for dtype in (torch.float32, torch.float16, torch.bfloat16):
        assert torch.empty(33, dtype=dtype, device="mps").isnan().all()
    assert torch.empty(7, dtype=torch.int16, device="mps").eq(-1).all()
    assert torch.empty(7, dtype=torch.bool, device="mps").all()
    grown = torch.ones(2, device="mps").resize_(5)  # through memory that is handed over
    assert grown.isnan().tolist() == [False, False, True, True, True]
    assert torch.zeros(5, device="mps").eq(0).all()


@pytest.mark.parametrize(("mode", "unwritten"), [("checked", 2**20), ("schedules", 0)])
def test_the_checking_mode_decides_at_first(fresh_python: FreshPython, mode: str, unwritten: int) -> None:
    done = fresh_python(LOADED_IN, MPSMITH_METAL_MODE=mode)  # a mebi of elements are pages that were never used: zeros
    assert int(done.stdout) == unwritten
