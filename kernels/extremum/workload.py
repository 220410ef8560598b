"""The call that is timed."""

from __future__ import annotations

import torch

from ..verification.workload import Workload, normal

WORKLOAD = Workload(
    "aten::max.unary_out", lambda x: torch.max(x, out=torch.empty((), device=x.device, dtype=x.dtype)), normal
)
