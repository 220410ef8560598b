"""Grids of fills, as a trace of the host code of 2.13.0's macOS wheel has them."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from mpsmith.simulator.shipped.conventions.fills import filled
from mpsmith.simulator.shipped.plan import KernelLaunch


class Kernels:
    """A release that ships every kernel."""

    release = "2.13.0"

    def __contains__(self, name: str) -> bool:
        return True

    def signature(self, name: str) -> Any:
        """No signature is asked for."""
        raise NotImplementedError


@pytest.mark.parametrize(
    ("start", "end", "threads"), [(0, 78, 20), (0, 76, 19), (1, 79, 20), (3, 79, 20), (1, 77, 20), (3, 80, 20)]
)
@pytest.mark.parametrize("dtype", [torch.uint8, torch.bool])
def test_a_thread_fills_four_bytes_of_memory(start: int, end: int, threads: int, dtype: torch.dtype) -> None:
    launch = filled(Kernels(), torch.zeros(80, dtype=dtype)[start:end], 0)
    assert isinstance(launch, KernelLaunch)
    assert launch.threads == (threads, 1, 1)


def test_a_thread_fills_one_element_of_more_bytes() -> None:
    launch = filled(Kernels(), torch.zeros(80, dtype=torch.float16)[1:78], 0)
    assert isinstance(launch, KernelLaunch)
    assert launch.threads == (77, 1, 1)
