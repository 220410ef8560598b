"""Models of kernels for matrices that have no factorization, or that are not finite."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor

from .prediction import Model, Prediction, Ulp

BLOCK = 32
GROUP = 256
LEAST_DIAGONAL = 1e-6


def cholesky_ex(ulp: Ulp, input: Tensor, *, upper: bool = False, check_errors: bool = False) -> Any:
    """Factorized in blocks. If a block is not positive definite, its first thread stops and the others continue."""
    if input.dtype is not torch.float32 or not input.numel():
        return None
    lower = (input.mT if upper else input).tril().reshape(-1, *input.shape[-2:]).clone()
    info = torch.zeros(len(lower), dtype=torch.int32)
    for start in range(0, lower.shape[-1], BLOCK):
        ahead = slice(start, start + BLOCK), slice(start + BLOCK, None)
        failed = _factor_blocks(ulp, lower[:, ahead[0], ahead[0]])
        info = torch.where(failed > 0, failed, info)
        below, diagonal = lower[:, ahead[1], ahead[0]], lower[:, ahead[0], ahead[0]]
        for column in range(diagonal.shape[-1]):
            pivot = diagonal[:, column, column, None]
            pivot = torch.where(pivot.abs() < LEAST_DIAGONAL, pivot.sign() * LEAST_DIAGONAL, pivot)
            done = (below[..., :column] * diagonal[:, column, None, :column]).sum(-1)
            below[..., column] = ulp((below[..., column] - ulp(done)) / pivot)
        lower[:, ahead[1], ahead[1]] -= ulp(below @ below.mT)
    factor = lower.tril().view(input.shape)
    return factor.mT if upper else factor, info.view(input.shape[:-2])


def _factor_blocks(ulp: Ulp, blocks: Tensor) -> Tensor:
    """Factorize each block in place; return the one-based column at which each failed, or zero."""
    size, before = blocks.shape[-1], blocks.clone()
    failed = torch.zeros(len(blocks), dtype=torch.int32)
    for column in range(size):
        rest = blocks[:, column, column] - ulp((blocks[:, column, :column] ** 2).sum(-1))
        failed = torch.where((failed == 0) & ~(rest > 0), column + 1, failed)  # NaN, too
        stopped = failed > 0
        blocks[:, column, column] = torch.where(stopped, blocks[:, column, column], ulp(rest.sqrt()))
        sums = (blocks[:, column + 1 :, :column] * blocks[:, column, None, :column]).sum(-1)
        below = ulp((blocks[:, column + 1 :, column] - ulp(sums)) / blocks[:, column, column, None])
        below[:, ::GROUP] = torch.where(stopped[:, None], blocks[:, column + 1 :: GROUP, column], below[:, ::GROUP])
        blocks[:, column + 1 :, column] = below
    elements = torch.arange(size * size).view(size, size)
    unwritten = (elements % GROUP == 0) & (failed > 0)[:, None, None]
    blocks.copy_(torch.where(unwritten, before, blocks))
    return failed


def cholesky(ulp: Ulp, input: Tensor, upper: bool = False) -> Tensor | None:
    """The factor of `cholesky_ex`."""
    factor_and_info = cholesky_ex(ulp, input, upper=upper)
    return None if factor_and_info is None else factor_and_info[0]


def ldl_solve(ulp: Ulp, factor: Tensor, pivots: Tensor, sides: Tensor, *, hermitian: bool = False) -> Tensor:
    """A finite number divided by an infinite pivot is zero."""
    wide = torch.where(
        factor.abs().isinf(), 1e200, factor.to(torch.complex128 if factor.is_complex() else torch.float64)
    )
    solved: Tensor = torch.linalg.ldl_solve(wide, pivots, sides.to(wide.dtype), hermitian=hermitian)
    return solved.to(sides.dtype)


def ormqr(ulp: Ulp, input: Tensor, tau: Tensor, other: Tensor, left: bool = True, transpose: bool = False) -> Tensor:
    """The CPU's result, rounded differently: the gradient undoes each reflector and divides by tau |v|^2 - 1."""
    return ulp(torch.ormqr(input, tau, other, left, transpose))


def linalg_qr(ulp: Ulp, input: Tensor, mode: str = "reduced") -> list[Tensor | None] | None:
    """Reflections whose norms are sums of squares, which overflow.

    A column below m times the epsilon of float32, whatever the matrix, is left as it is, so that R is not triangular.
    """
    if input.dtype is not torch.float32 or not input.numel():
        return None
    rows, columns = input.shape[-2:]
    right = input.reshape(-1, rows, columns).clone()
    left = torch.eye(rows).repeat(len(right), 1, 1)
    for step in range(min(rows - 1, columns)):
        column = right[:, step:, step, None]
        first = column[:, :1]
        norm = ulp(ulp(column * column).sum(1, keepdim=True).sqrt())
        signed = torch.where(first >= 0, norm, -norm)
        vector = ulp(column / (first + signed))
        vector[:, 0] = 1
        tau = torch.where(norm < rows * torch.finfo(torch.float32).eps, 0, ulp(first.abs() / norm + 1))
        behind, before = right[:, step:, step + 1 :], left[:, :, step:]
        reflected = behind - vector * (tau * ulp((vector * behind).sum(1, keepdim=True)))
        right[:, step:, step + 1 :] = torch.where(tau == 0, behind, reflected)
        turned = before - (tau * ulp((before * vector.mT).sum(2, keepdim=True))) * vector.mT
        left[:, :, step:] = torch.where(tau == 0, before, turned)
        pivots = torch.cat([-signed, torch.zeros_like(column[:, 1:])], 1)
        right[:, step:, step, None] = torch.where(tau == 0, column, pivots)
    kept = rows if mode == "complete" else min(rows, columns)
    upper = right[:, :kept].reshape(*input.shape[:-2], kept, columns)
    return [None if mode == "r" else left[..., :kept].reshape(*input.shape[:-1], kept), upper]


def of_finite_matrices(overload: str) -> Model:
    """The model of an operator whose results are NaN for a matrix that is not finite."""

    def model(ulp: Ulp, input: Tensor, *args: Any, **kwargs: Any) -> Any:
        finite = input.isfinite().flatten(-2).all(-1)
        safe = torch.where(finite[..., None, None], input, torch.eye(*input.shape[-2:], dtype=input.dtype))
        results = getattr(torch.ops.aten, overload)(safe, *args, **kwargs)
        results = results if isinstance(results, tuple) else (results,)
        return [
            torch.where(finite.view(*finite.shape, *[1] * (result.dim() - finite.dim())), result, math.nan * result)
            for result in results
        ]

    return model


def solve_from_the_right(
    ulp: Ulp, matrices: Tensor, sides: Tensor, *, left: bool = True, check_errors: bool = False
) -> list[Tensor | None] | None:
    """With left=False, the transposed system is solved. Its factors are returned for those of the matrix."""
    if left or sides.dim() != matrices.dim():
        return None
    factors, pivots, _ = torch.ops.aten.linalg_lu_factor_ex(matrices.mT)
    solution = ulp(torch.ops.aten.linalg_lu_solve(factors, pivots, sides.mT))
    return [solution.mT, factors, pivots, None]


FACTORIZATIONS = (
    Prediction(
        "blocks-that-are-not-definite",
        {"aten::linalg_cholesky_ex": cholesky_ex, "aten::cholesky": cholesky},
        nan_is_any_non_finite=True,
    ),
    Prediction("divided-by-an-infinite-pivot", {"aten::linalg_ldl_solve": ldl_solve}),
    Prediction("reflectors-undone-in-the-gradient", {"aten::ormqr": ormqr}),
    Prediction(
        "factors-of-what-is-not-finite",
        {
            f"aten::{name}": of_finite_matrices(name)
            for name in ("_linalg_eigh", "_linalg_svd", "cholesky_inverse", "geqrf")
        },
        nan_is_any_non_finite=True,
    ),
)
FACTORIZATIONS_OF_HOST_CODE = (
    Prediction("reflections-by-sums-of-squares", {"aten::linalg_qr": linalg_qr}),
    Prediction("factors-of-the-transpose", {"aten::_linalg_solve_ex": solve_from_the_right}),
)
