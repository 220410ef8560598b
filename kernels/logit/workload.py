"""The call that is timed."""

from __future__ import annotations

import torch

from ..verification.workload import Workload

WORKLOAD = Workload("aten::logit_", lambda x: x.logit_(1e-6), lambda n: (torch.rand(n),))
