"""The call that is timed."""

from __future__ import annotations

import torch

from ..verification.workload import Workload, volume

WORKLOAD = Workload("aten::_adaptive_avg_pool3d", lambda x: torch.nn.functional.adaptive_avg_pool3d(x, 4), volume)
