"""The call that is timed."""

from __future__ import annotations

import torch

from ..verification.workload import Workload, normal

WORKLOAD = Workload("aten::rrelu_with_noise", lambda x: torch.nn.functional.rrelu(x, training=True), normal)
