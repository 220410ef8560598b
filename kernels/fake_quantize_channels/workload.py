"""The call that is timed."""

from __future__ import annotations

import torch

from ..verification.workload import Workload, rows_and_columns


def _channels(elements: int) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """A matrix, and a scale and a zero point for each of its rows."""
    rows, columns = rows_and_columns(elements)
    return torch.randn(rows, columns), torch.full((rows,), 0.1), torch.zeros(rows, dtype=torch.int32)


WORKLOAD = Workload(
    "aten::fake_quantize_per_channel_affine_cachemask",
    lambda x, scale, zero: torch.fake_quantize_per_channel_affine(x, scale, zero, 0, -128, 127),
    _channels,
)
