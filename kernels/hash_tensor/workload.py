"""The call that is timed."""

from __future__ import annotations

import torch

from ..verification.workload import Workload, normal

WORKLOAD = Workload("aten::hash_tensor.out", torch.hash_tensor, normal)
