"""The calls that verify and time the family."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import torch

from ..verification.calls import REAL, KernelCall
from ..verification.inputs import values
from ..verification.workload import Workload, normal


def _tensors(dtype: torch.dtype) -> Iterator[tuple[Any, ...]]:
    for shape, dim in (
        ((7, 5), (0, 1)),
        ((3, 4, 6), (1,)),
        ((3, 4, 6), (0, -1)),
        ((129,), 0),
        ((), ()),
        ((0, 3), (1,)),
    ):
        yield values(shape, dtype), dim, True
        yield values(shape, dtype), dim, False
    yield values((9001,), dtype), (), False  # several groups share the row
    yield values((1030, 70), dtype), 1, False  # a group of few threads for each of many rows
    if dtype.is_floating_point:
        for number in (0.0, -0.0, math.inf, -math.inf, 6e-8, -6e-5, 3.0):
            yield torch.tensor([number]).to(dtype), (), False
        mixed = values((9001,), dtype)
        mixed[::700], mixed[1::900], mixed[2::1100] = 0.0, math.inf, 6e-8  # among normal numbers
        yield mixed, (), False
    if dtype is torch.int64:
        yield torch.tensor([2**62 + 3, -1, -(2**63)]), (), False


def _hash(x: torch.Tensor, dim: Any, keepdim: bool) -> torch.Tensor:
    """The hash as int64, because some operators of the comparison lack uint64."""
    return torch.hash_tensor(x, dim, keepdim=keepdim).view(torch.int64)


def _with_outputs(dtype: torch.dtype) -> Iterator[tuple[Any, ...]]:
    """Outputs as int64, because some operators that change layouts lack uint64."""
    yield values((3, 4, 6), dtype), 1, torch.ones(3, 6, dtype=torch.int64)


def _hash_into(x: torch.Tensor, dim: int, out: torch.Tensor) -> torch.Tensor:
    torch.hash_tensor(x, dim, out=out.view(torch.uint64))
    return out.clone()


CASES = (
    KernelCall("hash_tensor", ("aten::hash_tensor",), _hash, _tensors, REAL),
    KernelCall("hash_tensor", ("aten::hash_tensor",), _hash_into, _with_outputs, variant="out", expands=False),
)

# Older releases lack the function: the module must import there.
WORKLOAD = Workload("aten::hash_tensor.out", lambda x: torch.hash_tensor(x), normal)
