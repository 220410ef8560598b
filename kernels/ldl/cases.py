"""The calls that verify and time the family."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch

from ..verification.calls import KernelCall, RefusedCall
from ..verification.inputs import values
from ..verification.workload import Workload


def _symmetric(shape: tuple[int, ...], dtype: torch.dtype, hermitian: bool) -> torch.Tensor:
    a = values(shape, dtype)
    return a + (a.mH if hermitian else a.mT)


def _systems(dtype: torch.dtype) -> Iterator[tuple[Any, ...]]:
    for hermitian in (False, True):
        for shape in ((1, 1), (5, 5), (2, 3, 12, 12), (40, 40), (0, 0)):
            yield _symmetric(shape, dtype, hermitian), values((*shape[:-1], 3), dtype), hermitian
        hollow = _symmetric((6, 6), dtype, hermitian)
        yield hollow - torch.diag(torch.diagonal(hollow)), values((2, 6, 3), dtype), hermitian


def _ldl(a: torch.Tensor, side: torch.Tensor, hermitian: bool) -> tuple[torch.Tensor, ...]:
    """Factors, pivots, info, and the solution."""
    factors, pivots, info = torch.linalg.ldl_factor_ex(a, hermitian=hermitian)
    return factors, pivots, info, torch.linalg.ldl_solve(factors, pivots, side, hermitian=hermitian)


CASES = (
    KernelCall(
        "linalg.ldl_factor_ex",
        ("aten::linalg_ldl_factor_ex", "aten::linalg_ldl_solve"),
        _ldl,
        _systems,
        (torch.float32, torch.complex64),
        variant="and_solve",
        expands=False,
    ),
)


def refused() -> Iterator[RefusedCall]:
    """Wrong pivots and right-hand sides."""
    for title, pivots, side in (
        ("pivots of floats", torch.ones(3), torch.ones(3, 1)),
        ("too few pivots", torch.tensor([1, 2]), torch.ones(3, 1)),
        ("too few sides", torch.tensor([1, 2, 3]), torch.ones(2, 1)),
    ):
        yield RefusedCall(title, torch.ops.aten.linalg_ldl_solve, (torch.eye(3), pivots, side))


def _symmetric_matrices(elements: int) -> tuple[torch.Tensor]:
    """Matrices of 32 rows."""
    a = torch.randn(max(1, elements // 1024), 32, 32)
    return (a + a.mT,)


WORKLOAD = Workload("aten::linalg_ldl_factor_ex.out", torch.linalg.ldl_factor_ex, _symmetric_matrices)
