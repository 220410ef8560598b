"""The call that is timed."""

from __future__ import annotations

import torch

from ..verification.workload import Workload, normal

WORKLOAD = Workload("aten::frexp.Tensor_out", torch.frexp, normal)
