"""The calls that verify and time the family."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import torch

from ..verification.calls import REAL, KernelCall
from ..verification.inputs import values
from ..verification.workload import Workload, normal


def _whole_tensors(dtype: torch.dtype) -> Iterator[tuple[Any, ...]]:
    for shape in ((6, 9), (), (3000,), (70, 90)):
        yield (values(shape, dtype),)
    if dtype.is_floating_point:
        yield (torch.tensor([1.0, math.nan, 2.0]).to(dtype),)
        yield (torch.tensor([math.inf, -math.inf]).to(dtype),)


def _max(x: torch.Tensor) -> torch.Tensor:
    return torch.max(x, out=torch.empty((), dtype=x.dtype, device=x.device))


def _min(x: torch.Tensor) -> torch.Tensor:
    return torch.min(x, out=torch.empty((), dtype=x.dtype, device=x.device))


CASES = (
    KernelCall("max", ("aten::max",), _max, _whole_tensors, REAL, variant="unary_out", special_values=True),
    KernelCall("min", ("aten::min",), _min, _whole_tensors, REAL, variant="unary_out", special_values=True),
)


WORKLOAD = Workload(
    "aten::max.unary_out", lambda x: torch.max(x, out=torch.empty((), device=x.device, dtype=x.dtype)), normal
)
