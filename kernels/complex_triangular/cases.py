"""The calls that verify and time the family."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import torch

from ..verification.calls import KernelCall
from ..verification.inputs import values
from ..verification.workload import Workload

_DTYPES = (torch.complex64,)
# The batch and size of matrices, the batch and number of vectors.
_SIZES: tuple[tuple[tuple[int, ...], int, tuple[int, ...], int], ...] = (
    ((), 1, (), 1),
    ((), 5, (), 3),
    ((2, 3), 4, (2, 3), 2),
    ((3,), 6, (), 1),
    ((), 40, (2,), 3),
    ((), 0, (), 2),
    ((0,), 3, (0,), 2),
    ((2,), 3, (2,), 0),
)


def _systems(dtype: torch.dtype) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
    """Diagonally dominant matrices, and right-hand sides."""
    for batch, n, others, count in _SIZES:
        matrix = values((*batch, n, n), dtype) / max(1, n) + 3 * torch.eye(n)
        yield matrix, values((*others, n, count), dtype)


def _triangular(dtype: torch.dtype) -> Iterator[tuple[Any, ...]]:
    for matrix, columns in _systems(dtype):
        for upper, left, unit in ((True, True, False), (False, True, True), (True, False, True), (False, False, False)):
            yield matrix, columns if left else columns.mT, upper, left, unit


def _solve_triangular(a: torch.Tensor, b: torch.Tensor, upper: bool, left: bool, unit: bool) -> torch.Tensor:
    solution: torch.Tensor = torch.linalg.solve_triangular(a, b, upper=upper, left=left, unitriangular=unit)
    return solution


def _legacy(dtype: torch.dtype) -> Iterator[tuple[Any, ...]]:
    for matrix, columns in _systems(dtype):
        for upper, transpose, unit in ((True, False, False), (False, True, True), (True, True, False)):
            yield columns, matrix, upper, transpose, unit


def _factored(dtype: torch.dtype) -> Iterator[tuple[Any, ...]]:
    for matrix, columns in _systems(dtype):
        turned = matrix.flip(-1)  # to exchange rows
        factors, pivots = torch.linalg.lu_factor(turned)
        for left in (True, False):
            for adjoint in (False, True):
                yield factors, pivots, columns if left else columns.mT, left, adjoint


def _lu_solve(lu: torch.Tensor, pivots: torch.Tensor, b: torch.Tensor, left: bool, adjoint: bool) -> torch.Tensor:
    solution: torch.Tensor = torch.linalg.lu_solve(lu, pivots, b, left=left, adjoint=adjoint)
    return solution


def _cholesky(dtype: torch.dtype) -> Iterator[tuple[Any, ...]]:
    """Triangular factors with a real diagonal, as in a Cholesky factorization."""
    for matrix, _ in _systems(dtype):
        factor = matrix - 1j * torch.diag_embed(matrix.diagonal(dim1=-2, dim2=-1).imag)
        for upper in (False, True):
            yield factor, upper


def _invertible(dtype: torch.dtype) -> Iterator[tuple[Any, ...]]:
    for matrix, _ in _systems(dtype):
        yield (matrix.flip(-1),)


def _inverse(a: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    inverse, info = torch.linalg.inv_ex(a)
    return inverse, info


def _definite(dtype: torch.dtype) -> Iterator[tuple[Any, ...]]:
    for shape in ((3, 3), (2, 5, 5), (0, 3, 3), (2, 0, 0)):
        x = values(shape, dtype)
        for upper in (False, True):
            yield x @ x.mH + torch.eye(shape[-1]), upper


CASES = (
    KernelCall(
        "cholesky", ("aten::cholesky",), torch.cholesky, _definite, (torch.float32,), gradients=(0,), expands=False
    ),
    KernelCall("linalg.inv_ex", ("aten::linalg_inv_ex",), _inverse, _invertible, _DTYPES),
    KernelCall("linalg.solve_triangular", ("aten::linalg_solve_triangular",), _solve_triangular, _triangular, _DTYPES),
    KernelCall("triangular_solve", ("aten::triangular_solve",), torch.triangular_solve, _legacy, _DTYPES),
    KernelCall("linalg.lu_solve", ("aten::linalg_lu_solve",), _lu_solve, _factored, _DTYPES),
    KernelCall(
        "cholesky_inverse", ("aten::cholesky_inverse",), torch.cholesky_inverse, _cholesky, _DTYPES, expands=False
    ),
)


def _solve(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    solution: torch.Tensor = torch.linalg.solve_triangular(a, b, upper=True)
    return solution


def _system(elements: int) -> tuple[torch.Tensor, torch.Tensor]:
    n = max(2, math.isqrt(elements))
    return torch.randn(n, n, dtype=torch.complex64) / n + 3 * torch.eye(n), torch.randn(n, 32, dtype=torch.complex64)


WORKLOAD = Workload("aten::linalg_solve_triangular", _solve, _system)
