"""The calls that verify and time the family."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import torch

from ..verification.calls import REAL, KernelCall
from ..verification.inputs import values
from ..verification.workload import Workload, rows_and_columns


def _rows(dtype: torch.dtype) -> Iterator[tuple[Any, ...]]:
    for shape in ((6, 9), (4, 5, 6)):
        for dim in (0, -1):
            yield values(shape, dtype), dim
    yield values((), dtype), 0


def _ambiguous_rows(dtype: torch.dtype) -> Iterator[tuple[Any, ...]]:
    """Rows with several most frequent elements: the index is undefined, so gradients cannot be compared."""
    yield values((5, 300), dtype), -1
    yield values((300, 5), dtype), 0
    yield torch.tensor([[math.nan, 1.0, 1.0], [2.0, math.nan, 2.0], [math.nan] * 3]).to(dtype), -1


def _mode(x: torch.Tensor, dim: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Values, and the elements at the indices: the index of one of several equal elements is undefined."""
    modes, indices = torch.mode(x, dim, keepdim=True)
    return modes, torch.gather(x, dim, indices) if x.dim() else modes


CASES = (
    KernelCall("mode", ("aten::mode",), _mode, _rows, REAL, gradients=(0,), special_values=True),
    KernelCall("mode", ("aten::mode",), _mode, _ambiguous_rows, variant="long_rows"),
)


WORKLOAD = Workload("aten::mode", lambda x: torch.mode(x, -1), lambda n: (torch.randn(rows_and_columns(n)).round(),))
