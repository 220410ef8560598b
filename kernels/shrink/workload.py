"""The call that is timed."""

from __future__ import annotations

import torch

from ..verification.workload import Workload, normal

WORKLOAD = Workload("aten::softshrink.out", torch.nn.functional.softshrink, normal)
