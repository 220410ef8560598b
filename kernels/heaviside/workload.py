"""The call that is timed."""

from __future__ import annotations

import torch

from ..verification.workload import Workload

WORKLOAD = Workload("aten::heaviside.out", torch.heaviside, lambda n: (torch.randn(n), torch.randn(n)))
