"""The call that is timed."""

from __future__ import annotations

import torch

from ..verification.workload import Workload

WORKLOAD = Workload(
    "aten::special_legendre_polynomial_p.out",
    torch.special.legendre_polynomial_p,
    lambda n: (torch.rand(n) * 2 - 1, torch.full((n,), 8.0)),
)
