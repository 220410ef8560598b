"""The calls that verify and time the family."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import torch

from ..runtime.layout import broadcast
from ..verification.calls import REAL, KernelCall
from ..verification.inputs import SHAPES, values
from ..verification.workload import Workload


def _with_values_at_zero(dtype: torch.dtype) -> Iterator[tuple[Any, ...]]:
    for shape in SHAPES:
        x = values(shape, dtype)
        x = torch.where(values(shape, torch.int64) == 0, torch.zeros_like(x), x)
        yield x, values(shape, dtype)
        yield x, values((), dtype)
    yield values((4, 1), dtype), values((1, 5), dtype)
    if dtype.is_floating_point:
        yield torch.tensor([math.nan, 0.0, 0.0]).to(dtype), torch.tensor([1.0, math.nan, math.inf]).to(dtype)


def _in_place(x: torch.Tensor, at_zero: torch.Tensor) -> torch.Tensor:
    return x.heaviside_(at_zero)


def _tensors_of_one_shape(dtype: torch.dtype) -> Iterator[tuple[Any, ...]]:
    for x, at_zero in _with_values_at_zero(dtype):
        if broadcast(x.shape, at_zero.shape) == x.shape:
            yield x, at_zero


CASES = (
    KernelCall(
        "heaviside",
        ("aten::heaviside",),
        torch.heaviside,
        _with_values_at_zero,
        REAL,
        elementwise=True,
        special_values=True,
    ),
    KernelCall("heaviside_", ("aten::heaviside",), _in_place, _tensors_of_one_shape, REAL, expands=False),
)


WORKLOAD = Workload("aten::heaviside.out", torch.heaviside, lambda n: (torch.randn(n), torch.randn(n)))
