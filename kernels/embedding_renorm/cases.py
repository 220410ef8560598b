"""The calls that verify and time the family."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import torch

from ..verification.calls import FLOATING, KernelCall
from ..verification.inputs import values
from ..verification.workload import Workload, rows_and_columns


def _tables(dtype: torch.dtype) -> Iterator[tuple[Any, ...]]:
    for columns in (5, 300):
        for norm in (0.0, 1.0, 2.0, 3.0, -1.0, math.inf, -math.inf):
            yield values((6, columns), dtype), torch.tensor([[3, 3, 1], [0, 5, 1]]), 1.5, norm


def _slices(dtype: torch.dtype) -> Iterator[tuple[Any, ...]]:
    for shape, dim in (((4, 5), 0), ((3, 4, 6), -2), ((2, 0), 0)):
        for norm in (0.5, 1.0, 2.0, 3.0):
            yield values(shape, dtype), norm, dim, 1.5


def _into(x: torch.Tensor, *arguments: Any) -> torch.Tensor:
    return torch.renorm(x, *arguments, out=torch.empty(0, dtype=x.dtype, device=x.device))


def _in_place(x: torch.Tensor, *arguments: Any) -> torch.Tensor:
    return x.renorm_(*arguments)


CASES = (
    KernelCall(
        "embedding_renorm_",
        ("aten::embedding_renorm_",),
        torch.embedding_renorm_,
        _tables,
        (*FLOATING, torch.complex64),
        expands=False,
    ),
    KernelCall("renorm", ("aten::renorm",), torch.renorm, _slices, (torch.complex64,)),
    KernelCall("renorm", ("aten::renorm",), _into, _slices, (torch.complex64,), variant="out"),
    KernelCall("renorm", ("aten::renorm_",), _in_place, _slices, (torch.complex64,), variant="in place", expands=False),
)


WORKLOAD = Workload(
    "aten::embedding_renorm_",
    lambda weight, indices: torch.embedding_renorm_(weight, indices, 1.0, 2.0),
    lambda n: (torch.randn(rows_and_columns(n)), torch.arange(rows_and_columns(n)[0])),
)
