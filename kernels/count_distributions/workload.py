"""The call that is timed."""

from __future__ import annotations

import torch

from ..verification.workload import Workload


def _rates(elements: int) -> tuple[torch.Tensor]:
    """Small and large ones, so that both ways of drawing are taken."""
    return (torch.rand(elements) * 50,)


WORKLOAD = Workload("aten::poisson", torch.poisson, _rates)
