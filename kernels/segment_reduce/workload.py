"""The call that is timed."""

from __future__ import annotations

import torch

from ..verification.workload import Workload


def _segments(elements: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Numbers, and the lengths of segments of 64, the last one shorter or longer."""
    count = max(1, elements // 64)
    lengths = torch.full((count,), 64)
    lengths[-1] = elements - 64 * (count - 1)
    return torch.randn(elements), lengths


WORKLOAD = Workload(
    "aten::segment_reduce", lambda x, lengths: torch.segment_reduce(x, "sum", lengths=lengths, unsafe=True), _segments
)
