"""The calls that verify and time the family."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch

from ..verification.calls import KernelCall
from ..verification.inputs import values
from ..verification.workload import Workload

_DTYPES = (torch.float32, torch.complex64)
_SHAPES = ((5, 5), (2, 7, 3), (3, 8), (1, 4), (4, 1), (40, 33), (70, 68), (6, 140), (0, 3), (3, 0), (0, 4, 3))


def _matrices(dtype: torch.dtype) -> Iterator[tuple[Any, ...]]:
    for shape in _SHAPES:
        yield (values(shape, dtype),)
    yield (torch.triu(values((6, 4), dtype)),)
    yield (torch.zeros(4, 3, dtype=dtype),)
    yield (values((5, 3), dtype) * torch.tensor([1e25, 1.0, 1e-25]),)


def _products(dtype: torch.dtype) -> Iterator[tuple[Any, ...]]:
    """Reflectors, taus, the other matrix, on which side Q is, and whether it is the adjoint."""
    for batch, m, n, columns in (((), 5, 5, 4), ((2,), 7, 3, 2), ((), 4, 6, 3), ((), 40, 33, 7), ((), 5, 0, 2)):
        factors, taus = torch.geqrf(values((*batch, m, n), dtype))
        for left in (True, False):
            shape = (m, columns) if left else (columns, m)
            for transpose in (False, True):
                yield factors, taus, values((*batch, *shape), dtype), left, transpose
    yield torch.zeros(0, 0, dtype=dtype), torch.zeros(0, dtype=dtype), torch.zeros(0, 3, dtype=dtype), True, False


CASES = (
    KernelCall("geqrf", ("aten::geqrf",), torch.geqrf, _matrices, _DTYPES),
    KernelCall("ormqr", ("aten::ormqr",), torch.ormqr, _products, _DTYPES, gradients=(2,), expands=False),
)


def _timed_matrices(elements: int) -> tuple[torch.Tensor]:
    """Matrices of 32 rows."""
    return (torch.randn(max(1, elements // 1024), 32, 32),)


WORKLOAD = Workload("aten::geqrf", torch.geqrf, _timed_matrices)
