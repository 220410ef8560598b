"""The calls that verify and time the family."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import torch

from ..verification.calls import INTEGERS, KernelCall
from ..verification.inputs import integers, values
from ..verification.workload import Workload

# Rows, inner dimension and columns: smaller than a tile, one tile, larger, and long sums of the largest products.
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


def _layers(dtype: torch.dtype) -> Iterator[tuple[Any, ...]]:
    for shape, outputs in (((4, 5), 3), ((2, 3, 7), 4), ((6,), 2), ((3, 0), 2)):
        x, weight, bias = (values(sizes, dtype) for sizes in (shape, (outputs, shape[-1]), (outputs,)))
        yield x, weight, None
        yield x * 17, weight * 11, bias
    yield x, values((0,), dtype), None


def _vectors(dtype: torch.dtype) -> Iterator[tuple[Any, ...]]:
    for shape in ((3, 4), (4,), (), (3, 1)):
        for beta, alpha in ((1, 1), (0, 1), (3, 2)) if dtype != torch.bool else ((True, True), (False, True)):
            yield values(shape, dtype), values((3,), dtype), values((4,), dtype), beta, alpha


def _outer(x: torch.Tensor, vec1: torch.Tensor, vec2: torch.Tensor, beta: int, alpha: int) -> torch.Tensor:
    return torch.addr(x, vec1, vec2, beta=beta, alpha=alpha)


def _outer_into(x: torch.Tensor, vec1: torch.Tensor, vec2: torch.Tensor, beta: int, alpha: int) -> torch.Tensor:
    out = torch.ones(len(vec1), len(vec2), dtype=x.dtype, device=x.device)
    return torch.addr(x, vec1, vec2, beta=beta, alpha=alpha, out=out)


def _sparse(dtype: torch.dtype) -> Iterator[tuple[Any, ...]]:
    for rows, inner, columns in ((3, 2, 4), (5, 6, 1), (4, 3, 0), (2, 0, 3), (0, 2, 3)):
        kept = (torch.arange(rows * inner) % 3 == 0).reshape(rows, inner)
        for beta, alpha in ((1, 1), (0, 2), (3, 0)):
            mat1 = values((rows, inner), dtype) * kept.to(dtype)
            yield values((rows, columns), dtype), mat1, values((inner, columns), dtype), beta, alpha


def _sparse_product(self: torch.Tensor, mat1: torch.Tensor, mat2: torch.Tensor, beta: int, alpha: int) -> Any:
    product = torch.sspaddmm(self.to_sparse(), mat1.to_sparse(), mat2, beta=beta, alpha=alpha)
    return product._indices(), product._values()


_DTYPES = (torch.int8, torch.uint8)
_SPARSE = (torch.float32, torch.complex64, *INTEGERS)
_NOT_FLOATING = (*INTEGERS, torch.bool, torch.complex64)

CASES = (
    KernelCall("_int_mm", ("aten::_int_mm",), torch._int_mm, _matrices, _DTYPES),
    KernelCall("_int_mm", ("aten::_int_mm",), _into, _matrices, _DTYPES, variant="out"),
    KernelCall("nn.functional.linear", ("aten::linear",), torch.nn.functional.linear, _layers, INTEGERS),
    KernelCall("addr", ("aten::addr",), _outer, _vectors, _NOT_FLOATING),
    KernelCall("addr", ("aten::addr",), _outer_into, _vectors, _NOT_FLOATING, variant="out"),
    KernelCall("sspaddmm", ("aten::sspaddmm",), _sparse_product, _sparse, _SPARSE),
)


def _timed_matrices(elements: int) -> tuple[torch.Tensor, torch.Tensor]:
    side = max(1, math.isqrt(elements))
    left, right = torch.randint(-128, 128, (2, side, side), dtype=torch.int8)
    return left, right


WORKLOAD = Workload("aten::_int_mm", torch._int_mm, _timed_matrices, lambda n: 2.0 * n**1.5)
