"""The calls that verify and time the family."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import torch

from ..verification.calls import FLOATING, KernelCall
from ..verification.inputs import values
from ..verification.workload import Workload, rows_and_columns

_aten = torch.ops.aten


def _tensors(dtype: torch.dtype) -> Iterator[tuple[Any, ...]]:
    real = torch.float32 if dtype.is_complex else dtype
    for shape, dim, correction, keepdim, result in (
        ((7, 5), [1], 1, False, (7,)),
        ((7, 5), None, 0, False, ()),
        ((3, 4, 6), [0, 2], 2.5, True, (1, 4, 1)),
        ((3, 4, 6), [-2], None, False, (3, 6)),
        ((3, 4, 6), [0], 5, False, (4, 6)),
        ((3, 0, 6), [1], 1, False, (3, 6)),
        ((), [0], 0, False, ()),
        ((2, 9001), [1], 1, False, (2,)),  # several groups share a row
        ((1030, 530), [1], 1, False, (1030,)),  # a group of few threads for each of many rows
    ):
        yield values(shape, dtype) + 3, dim, correction, keepdim, torch.ones(result, dtype=real)
    if dtype is torch.float32:
        yield values((40, 3), dtype) + 10_000, [0], 1, False, torch.ones(3)
        yield torch.tensor([[1.0, math.inf], [math.nan, 2.0]]), [1], 1, False, torch.ones(2)
        yield values((7, 5), dtype), [1], 1, False, torch.ones(7, dtype=torch.float16)
        yield values((7, 5), dtype).half(), [1], 1, False, torch.ones(7)
    if dtype.is_complex:
        yield values((7, 5), dtype), [1], 1, False, torch.ones(7, dtype=dtype)


def _into(overload: Any) -> Callable[..., torch.Tensor]:
    def call(x: torch.Tensor, dim: Any, correction: Any, keepdim: bool, out: torch.Tensor) -> torch.Tensor:
        overload(x, dim, correction=correction, keepdim=keepdim, out=out)
        return out.clone()

    return call


CASES = tuple(
    KernelCall(
        name,
        (f"aten::{name}",),
        _into(getattr(_aten, name).correction_out),
        _tensors,
        (*FLOATING, torch.complex64),
        variant="out",
        expands=False,
    )
    for name in ("std", "var")
)


def _matrix(elements: int) -> tuple[torch.Tensor]:
    return (torch.randn(rows_and_columns(elements)),)


def _of_rows(x: torch.Tensor) -> torch.Tensor:
    return torch.var(x, 1, out=torch.empty(x.shape[0], device=x.device))


WORKLOAD = Workload("aten::var.correction_out", _of_rows, _matrix)
