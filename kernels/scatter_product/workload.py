"""The call that is timed."""

from __future__ import annotations

import torch

from ..verification.workload import Workload


def _product(x: torch.Tensor, index: torch.Tensor, source: torch.Tensor) -> torch.Tensor:
    return torch.scatter_reduce(x, 0, index, source, "prod")


def _scattered(elements: int) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    to = max(1, elements // 8)
    return torch.ones(to, dtype=torch.int64), torch.randint(to, (elements,)), torch.randint(-99, 99, (elements,))


WORKLOAD = Workload("aten::scatter_reduce.two", _product, _scattered)
