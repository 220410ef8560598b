"""The call that is timed."""

from __future__ import annotations

import torch

from ..verification.workload import Workload

WORKLOAD = Workload(
    "aten::logspace.out", lambda out: torch.logspace(-3, 3, out.numel(), out=out), lambda n: (torch.empty(n),)
)
