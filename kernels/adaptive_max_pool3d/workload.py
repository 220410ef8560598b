"""The call that is timed."""

from __future__ import annotations

import torch

from ..verification.workload import Workload, volume

WORKLOAD = Workload("aten::adaptive_max_pool3d.out", lambda x: torch.nn.functional.adaptive_max_pool3d(x, 4), volume)
