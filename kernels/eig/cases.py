"""The calls that verify and time the family."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import torch

from ...audit.model.case import Case
from ..verification.calls import KernelCall
from ..verification.inputs import values
from ..verification.matrix_kinds import eig_residuals, sizes, within_lapack_residuals
from ..verification.workload import Workload
from .eig import MOST_ROWS

_EIG, _EIGVALS = ("aten::linalg_eig",), ("aten::_linalg_eigvals", "aten::linalg_eigvals")
# The allowed residual and imaginary parts, in units in the last place of the norm, for each row.
_UNITS = 4.0
_EPSILON = torch.finfo(torch.float32).eps
_DTYPES = (torch.float32, torch.complex64)


def _matrices(dtype: torch.dtype) -> Iterator[tuple[Any, ...]]:
    for shape in ((1, 1), (2, 2), (2, 3, 5, 5), (0, 0), (2, 0, 3, 3), (9, 9), (20, 20), (4, 2, 2)):
        yield (values(shape, dtype, 1.0),)
    yield (torch.zeros(3, 3, dtype=dtype),)
    yield (torch.eye(4, dtype=dtype),)
    yield (torch.ones(5, 5, dtype=dtype),)
    yield (values((4, 4), dtype) * 1e25,)
    yield (values((4, 4), dtype) * 1e-25,)
    yield (torch.tensor([[0.0, 1.0], [-1.0, 0.0]]).to(dtype),)
    yield (torch.roll(torch.eye(8), 1, 0).to(dtype),)  # a cycle: it converges only with exceptional shifts
    yield (torch.triu(values((6, 6), dtype)),)


def _defective(dtype: torch.dtype) -> Iterator[tuple[Any, ...]]:
    """Defective matrices, and nearly defective ones."""
    yield ((torch.diag(torch.ones(5), 1) + 2 * torch.eye(6)).to(dtype),)
    companion = torch.zeros(4, 4)
    companion[0] = torch.tensor([4.0, -6.0, 4.0, -1.0])
    companion[1:, :3] = torch.eye(3)
    yield (companion.to(dtype),)
    yield ((torch.diag(torch.ones(11), 1) + torch.diag(torch.arange(12.0))).to(dtype) * 100,)
    graded = 10.0 ** -torch.arange(6.0)
    yield ((graded[:, None] * values((6, 6), torch.float32)).to(dtype),)


def _eig(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
    """Whether A V = V diag(w) holds up to rounding, and the vectors have length one."""
    w, v = torch.linalg.eig(x)
    return _defining(x.cpu(), w.cpu(), v.cpu(), x.device)


def _pairs(x: torch.Tensor) -> torch.Tensor:
    """Whether each value above the real axis is followed by its exact conjugate, as LAPACK guarantees."""
    w = torch.linalg.eig(x).eigenvalues.cpu()
    behind = torch.cat([w[..., 1:], torch.zeros_like(w[..., :1])], -1)
    paired: torch.Tensor = (w.imag <= 0) | (behind == w.conj())
    return paired.all(-1).to(x.device)


def _of_pairs(dtype: torch.dtype) -> Iterator[tuple[Any, ...]]:
    for shape in ((5, 5), (3, 9, 9), (40, 40)):
        yield (values(shape, dtype, 1.0),)
    yield (torch.kron(torch.eye(4), torch.tensor([[1.0, 2.0], [-2.0, 1.0]])).to(dtype),)  # all pairs are equal
    yield (torch.roll(torch.eye(7), 1, 0).to(dtype),)


def _into(x: torch.Tensor, w: torch.Tensor, v: torch.Tensor) -> tuple[torch.Tensor, ...]:
    torch.linalg.eig(x, out=(w, v))
    checks = _defining(x.cpu(), w.cpu(), v.cpu(), x.device)
    w.zero_()  # arguments are compared after a call, but their order is undefined
    v.zero_()
    return checks


def _defining(x: torch.Tensor, w: torch.Tensor, v: torch.Tensor, device: torch.device) -> tuple[torch.Tensor, ...]:
    wide = torch.complex128
    x, w, v = x.to(wide), w.to(wide), v.to(wide)
    n = x.shape[-1]
    if not x.numel():
        return torch.tensor(w.shape, device=device), torch.tensor(v.shape, device=device)
    norm = torch.linalg.matrix_norm(x)
    limit = _UNITS * n * _EPSILON * norm + 1e-37
    residual = (x @ v - v * w[..., None, :]).abs().amax((-2, -1))
    trace = (x.diagonal(dim1=-2, dim2=-1).sum(-1) - w.sum(-1)).abs()
    lengths = (torch.linalg.vector_norm(v, dim=-2) - 1).abs().amax(-1)
    answers = residual <= limit, trace <= limit * n, lengths <= 8 * _EPSILON
    return tuple(answer.to(device) for answer in answers)


def _eigvals(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
    """Whether the sums of the first powers of the eigenvalues are the traces of the powers of the matrix."""
    return _power_sums(x.cpu(), torch.linalg.eigvals(x).cpu(), x.device)


def _eigvals_into(x: torch.Tensor, out: torch.Tensor) -> tuple[torch.Tensor, ...]:
    torch.linalg.eigvals(x, out=out)
    sums = _power_sums(x.cpu(), out.cpu(), x.device)
    out.zero_()
    return sums


def _power_sums(x: torch.Tensor, w: torch.Tensor, device: torch.device) -> tuple[torch.Tensor, ...]:
    x, w = x.to(torch.complex128), w.to(torch.complex128)
    n = x.shape[-1]
    if not x.numel():
        return (torch.tensor(w.shape, device=device),)
    norm = torch.linalg.matrix_norm(x)
    answers, power = [], x
    for k in (1, 2, 3):
        off = (power.diagonal(dim1=-2, dim2=-1).sum(-1) - (w**k).sum(-1)).abs()
        answers.append((off <= k * _UNITS * n * _EPSILON * norm**k + 1e-37).to(device))
        power = power @ x
    return tuple(answers)


def _with_outputs(dtype: torch.dtype) -> Iterator[tuple[Any, ...]]:
    yield values((2, 5, 5), dtype), torch.zeros(2, 5).to(torch.complex64), torch.zeros(2, 5, 5).to(torch.complex64)


def _with_values(dtype: torch.dtype) -> Iterator[tuple[Any, ...]]:
    for x, w, _ in _with_outputs(dtype):
        yield x, w


_KINDS = within_lapack_residuals(torch.linalg.eig, eig_residuals)
CASES = (
    KernelCall("linalg.eig", _EIG, _eig, _matrices, _DTYPES),
    KernelCall("linalg.eig", _EIG, _eig, _defective, _DTYPES, variant="defective"),
    KernelCall("linalg.eig", _EIG, _KINDS, partial(sizes, largest=MOST_ROWS), _DTYPES, variant="kinds", layouts=False),
    KernelCall("linalg.eig", _EIG, _pairs, _of_pairs, (torch.float32,), variant="pairs"),
    KernelCall("linalg.eig", _EIG, _into, _with_outputs, _DTYPES, variant="out", expands=False),
    KernelCall("linalg.eigvals", _EIGVALS, _eigvals, _matrices, _DTYPES),
    KernelCall("linalg.eigvals", _EIGVALS, _eigvals_into, _with_values, _DTYPES, variant="out", expands=False),
)


def undefined(case: Case) -> str:
    """Why a recorded call has no defined result."""
    return "eigenvalues come in any order, and vectors may be turned"


_SIDE = 32


def _timed_matrices(elements: int) -> tuple[torch.Tensor]:
    """Many small matrices."""
    return (torch.randn(max(1, elements // _SIDE**2), _SIDE, _SIDE),)


WORKLOAD = Workload("aten::linalg_eig", torch.linalg.eig, _timed_matrices)
