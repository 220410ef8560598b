"""The call that is timed."""

from __future__ import annotations

import torch

from ..verification.workload import Workload


def _fill(key: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
    return torch.ops.aten._philox_normal_(x, key)  # type: ignore[no-any-return]


def _key_and_numbers(elements: int) -> tuple[torch.Tensor, torch.Tensor]:
    return torch.tensor([42, 0], dtype=torch.uint64), torch.empty(elements)


WORKLOAD = Workload("aten::_philox_normal_", _fill, _key_and_numbers)
