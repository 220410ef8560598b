"""The call that is timed."""

from __future__ import annotations

import torch

from ..verification.workload import Workload


def _tangents(elements: int) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """The unit, what it is of, and how that moves."""
    x = torch.randn(max(1, elements // 256), 256)
    return torch.nn.functional.glu(x), x, torch.randn(x.shape)


WORKLOAD = Workload("aten::glu_jvp", lambda glu, x, dx: torch.ops.aten.glu_jvp(glu, x, dx, 1), _tangents)
