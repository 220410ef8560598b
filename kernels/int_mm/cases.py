"""What verifies the family."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch

from ..verification.calls import KernelCall
from ..verification.inputs import integers

# Rows, inner dimension and columns: within a tile, exactly one, beyond it, and long sums of the largest products.
_SIZES = ((3, 4, 5), (64, 32, 64), (65, 33, 70), (1, 300, 1), (17, 1, 2), (0, 3, 4), (3, 0, 4), (2, 1_100, 3))


def _matrices(dtype: torch.dtype) -> Iterator[tuple[Any, ...]]:
    low, high = (0, 256) if dtype is torch.uint8 else (-128, 128)
    for rows, inner, columns in _SIZES:
        if inner == 1_100:
            largest = torch.full((rows, inner), low or high - 1).to(dtype)
            yield largest, torch.full((inner, columns), -128, dtype=torch.int8)
        else:
            yield integers((rows, inner), low, high).to(dtype), integers((inner, columns), -128, 128).to(torch.int8)


def _into(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    out = torch.ones((x.shape[0], y.shape[1]), dtype=torch.int32, device=x.device)
    return torch.ops.aten._int_mm.out(x, y, out=out)  # type: ignore[no-any-return]


_DTYPES = (torch.int8, torch.uint8)

CASES = (
    KernelCall("_int_mm", ("aten::_int_mm",), torch._int_mm, _matrices, _DTYPES),
    KernelCall("_int_mm", ("aten::_int_mm",), _into, _matrices, _DTYPES, variant="out"),
)
