"""The call that is timed."""

from __future__ import annotations

import torch

from ..verification.workload import Workload

WORKLOAD = Workload(
    "aten::channel_shuffle",
    lambda x: torch.channel_shuffle(x, 4),
    lambda n: (torch.randn(1, 16, max(1, n // 16)),),
)
