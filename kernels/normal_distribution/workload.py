"""The call that is timed."""

from __future__ import annotations

import torch

from ..verification.workload import Workload

WORKLOAD = Workload("aten::special_ndtri.out", torch.special.ndtri, lambda n: (torch.rand(n),))
