"""The calls that verify and time the family."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch

from ..verification.calls import KernelCall
from ..verification.inputs import values
from ..verification.matrix_kinds import eigh_residuals, sizes, within_lapack_residuals
from ..verification.workload import Workload

_DTYPES = (torch.float32, torch.complex64)


def _matrices(dtype: torch.dtype) -> Iterator[tuple[Any, ...]]:
    """Matrices that are not symmetric, because only one triangle is read."""
    for shape in ((1, 1), (2, 2), (5, 5), (2, 3, 12, 12), (31, 31), (50, 50), (0, 0), (2, 0, 0), (0, 3, 3)):
        yield values(shape, dtype), "L"
    yield values((2, 7, 7), dtype), "U"
    yield values((52, 52), dtype), "U"


def _particular(dtype: torch.dtype) -> Iterator[tuple[Any, ...]]:
    """Repeated eigenvalues, low rank, and eigenvalues of very different magnitude."""
    yield torch.zeros(4, 4, dtype=dtype), "L"
    yield torch.ones(2, 9, 9, dtype=dtype), "L"
    yield torch.eye(6, dtype=dtype) * 3, "U"
    narrow = values((10, 2), dtype)
    yield narrow @ narrow.mH, "L"
    long = values((60, 3), dtype)
    yield long @ long.mH, "L"
    basis = torch.linalg.qr(values((8, 8), dtype)).Q
    for diagonal in ([1, 1, 1, 2, 2, -1, -1, 0], [1e30, 1e29, 2e29, 3e29, 1e28, 5e29, 0, 1e29]):
        yield (basis * torch.tensor(diagonal)) @ basis.mH, "L"
    yield values((6, 6), dtype) * 1e-30, "L"


def _separate(dtype: torch.dtype) -> Iterator[tuple[Any, ...]]:
    """Matrices with well separated eigenvalues."""
    for shape in ((4, 4), (2, 5, 5), (50, 50)):
        basis = torch.linalg.qr(values(shape, dtype)).Q
        yield (basis * torch.arange(1, shape[-1] + 1)) @ basis.mH, "L"


def _function_of(a: torch.Tensor, uplo: str) -> tuple[torch.Tensor, torch.Tensor]:
    """Results that do not depend on the phases of eigenvectors: eigenvalues, and a function of the matrix."""
    w, v = torch.linalg.eigh(a, UPLO=uplo)
    return w, (v * torch.tanh(w).unsqueeze(-2)) @ v.mH


def _positive(dtype: torch.dtype) -> Iterator[tuple[Any, ...]]:
    for shape in ((1, 1), (5, 5), (2, 3, 8, 8), (50, 50), (0, 0), (2, 0, 0)):
        x = values(shape, dtype)
        yield (x @ x.mH + torch.eye(shape[-1]),)


_OPERATOR = ("aten::_linalg_eigh",)
# Of torch 2.14 and later.
_ROOTS = ("aten::linalg_matrix_sqrth",) if hasattr(torch.ops.aten, "linalg_matrix_sqrth") else ()
_KINDS = within_lapack_residuals(torch.linalg.eigh, eigh_residuals, hermitian=True)
CASES = (
    KernelCall("linalg.eigh", _OPERATOR, torch.linalg.eigh, _matrices, _DTYPES),
    KernelCall("linalg.eigh", _OPERATOR, torch.linalg.eigh, _particular, _DTYPES, variant="particular"),
    KernelCall("linalg.eigh", _OPERATOR, _KINDS, sizes, _DTYPES, variant="kinds", layouts=False),
    KernelCall("linalg.eigvalsh", _OPERATOR, torch.linalg.eigvalsh, _matrices, _DTYPES, gradients=(0,)),
    KernelCall("linalg.eigh", _OPERATOR, _function_of, _separate, _DTYPES, variant="function_of", gradients=(0,)),
    *(
        KernelCall("linalg.matrix_sqrth", _ROOTS, torch.ops.aten.linalg_matrix_sqrth, _positive, _DTYPES)
        for _ in _ROOTS
    ),
)


def _symmetric_matrices(elements: int) -> tuple[torch.Tensor]:
    """Matrices of 32 rows."""
    a = torch.randn(max(1, elements // 1024), 32, 32)
    return (a + a.mT,)


WORKLOAD = Workload("aten::_linalg_eigh.eigenvalues", torch.linalg.eigh, _symmetric_matrices)
