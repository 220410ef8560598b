"""The call that is timed."""

from __future__ import annotations

import torch

from ..verification.workload import Workload

WORKLOAD = Workload("aten::put_", torch.Tensor.put_, lambda n: (torch.randn(n), torch.randperm(n), torch.randn(n)))
