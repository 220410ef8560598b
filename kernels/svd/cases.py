"""The calls that verify and time the family."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch

from ..verification.calls import KernelCall
from ..verification.inputs import values
from ..verification.matrix_kinds import sizes, svd_residuals, within_lapack_residuals
from ..verification.workload import Workload

_DTYPES = (torch.float32, torch.complex64)


def _matrices(dtype: torch.dtype) -> Iterator[tuple[Any, ...]]:
    """Matrices, each with and without full_matrices."""
    shapes = ((1, 1), (5, 5), (7, 3), (2, 3, 6), (1, 4), (4, 1), (50, 50), (0, 3), (3, 0), (2, 0, 0), (0, 4, 3))
    for shape in shapes:
        for full in (False, True):
            yield values(shape, dtype), full
    yield values((60, 8), dtype), False


def _particular(dtype: torch.dtype) -> Iterator[tuple[Any, ...]]:
    """Matrices of low rank, with equal singular values, and with columns of very different norms."""
    yield torch.zeros(4, 3, dtype=dtype), True
    yield torch.ones(2, 5, 5, dtype=dtype), False
    yield torch.eye(6, dtype=dtype) * -3, False
    yield values((9, 2), dtype) @ values((2, 7), dtype), True
    yield torch.diag(torch.tensor([0.0, 2.0, 0.0, -1.0])).to(dtype), False
    yield values((5, 4), dtype) * 1e30, False
    yield values((5, 4), dtype) * 1e-30, False
    yield values((6, 6), dtype) * torch.tensor([1.0, 1e-3, 1e-6, 1.0, 10.0, 1e-9]), False


def _separate(dtype: torch.dtype) -> Iterator[tuple[Any, ...]]:
    """Matrices with well separated singular values."""
    for shape in ((4, 4), (2, 6, 5), (3, 5)):
        left, _, right = torch.linalg.svd(values(shape, dtype), full_matrices=False)
        yield (left * torch.arange(1.0, right.shape[-2] + 1)) @ right, False


def _function_of(a: torch.Tensor, full: bool) -> tuple[torch.Tensor, torch.Tensor]:
    """Results that do not depend on phases: singular values, and a function of the matrix."""
    u, s, vh = torch.linalg.svd(a, full_matrices=full)
    return s, (u * torch.tanh(s).unsqueeze(-2)) @ vh


def _values_of(a: torch.Tensor, full: bool) -> torch.Tensor:
    singular_values: torch.Tensor = torch.linalg.svdvals(a)
    return singular_values


def _systems(dtype: torch.dtype) -> Iterator[tuple[Any, ...]]:
    """A matrix, right-hand sides, and a driver."""
    for driver in (None, "gels", "gelsy", "gelsd", "gelss"):
        for batch, m, n, columns in (((), 7, 4, 3), ((2,), 3, 5, 2), ((2, 2), 4, 4, 1)):
            yield values((*batch, m, n), dtype), values((*batch, m, columns), dtype), driver
        yield values((2, 6, 3), dtype), values((2, 6), dtype), driver


def _solved(a: torch.Tensor, b: torch.Tensor, driver: str | None) -> tuple[torch.Tensor, ...]:
    return tuple(torch.linalg.lstsq(a, b, driver=driver))


def _shortest(dtype: torch.dtype) -> Iterator[tuple[Any, ...]]:
    """Matrices of low rank, whose systems have many solutions."""
    yield values((6, 2), dtype) @ values((2, 4), dtype), values((6, 3), dtype), 1e-4, "gelsd"
    yield values((3, 4), dtype), values((3, 2), dtype), 0.5, "gelss"


def _solved_to(a: torch.Tensor, b: torch.Tensor, rcond: float, driver: str) -> tuple[torch.Tensor, ...]:
    return tuple(torch.linalg.lstsq(a, b, rcond=rcond, driver=driver))


_OPERATOR = ("aten::_linalg_svd",)
_BOTH = (*_OPERATOR, "aten::linalg_svd")
_KINDS = within_lapack_residuals(torch.linalg.svd, svd_residuals)
CASES = (
    KernelCall("linalg.svd", _BOTH, torch.linalg.svd, _matrices, _DTYPES),
    KernelCall("linalg.svd", _BOTH, torch.linalg.svd, _particular, _DTYPES, variant="particular"),
    KernelCall("linalg.svd", _BOTH, _KINDS, sizes, _DTYPES, variant="kinds", layouts=False),
    KernelCall("linalg.svdvals", _OPERATOR, _values_of, _matrices, _DTYPES, gradients=(0,)),
    KernelCall(
        "linalg.svd", _BOTH, _function_of, _separate, _DTYPES, variant="function_of", gradients=(0,), expands=False
    ),
    KernelCall("linalg.lstsq", ("aten::linalg_lstsq",), _solved, _systems, _DTYPES, expands=False),
    KernelCall(
        "linalg.lstsq", ("aten::linalg_lstsq",), _solved_to, _shortest, _DTYPES, variant="low_rank", expands=False
    ),
)


def _timed_matrices(elements: int) -> tuple[torch.Tensor]:
    """Matrices of 32 rows."""
    return (torch.randn(max(1, elements // 1024), 32, 32),)


WORKLOAD = Workload("aten::_linalg_svd.U", torch.linalg.svd, _timed_matrices)
