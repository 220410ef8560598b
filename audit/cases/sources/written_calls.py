"""Shared code of the tables of handwritten calls: a row, its inputs and the dtypes of rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from ...model.case import Case
from ...model.selection import DTYPES

Shape = tuple[int, ...]
Calls = Callable[[torch.dtype], Iterator[Case]]

FLOATS = ("float32", "float16", "bfloat16")
REAL = tuple(name for name in DTYPES if not name.startswith("complex"))
ARITHMETIC = tuple(name for name in REAL if name != "bool")


@dataclass(frozen=True)
class WrittenCalls:
    """The calls of one operator.

    Attributes:
        operator: its name in ATen, which the group has.
        dtypes: in which it is called.
        calls: gives the cases in a dtype.
    """

    operator: str
    dtypes: tuple[str, ...]
    calls: Calls


def values(shape: Shape, dtype: torch.dtype) -> Tensor:
    """Values of both signs, small enough that sums of thousands are exact in float32, with repetitions."""
    if dtype is torch.bool:
        return torch.rand(shape) < 0.5
    if dtype.is_floating_point:
        return torch.randn(shape).to(dtype)
    low = -9 if dtype.is_signed else 0
    return torch.randint(low, 10, shape).to(dtype)


def case_of(call: Callable[..., Any], title: str, *args: Any, **kwargs: Any) -> Case:
    """The call of these arguments as a case."""
    return Case(call, args, kwargs, title=title)
