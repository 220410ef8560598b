"""The call that is timed."""

from __future__ import annotations

import torch

from ..verification.workload import Workload, normal

WORKLOAD = Workload("aten::special_airy_ai.out", torch.special.airy_ai, normal)
