"""Checks eigenvectors and singular vectors by their definition, because they are not unique.

An eigenvector may be multiplied by any number of modulus 1, and equal eigenvalues allow any orthonormal basis of their
vectors. So vectors that differ from the CPU's are checked by what defines them: the factors multiply to the matrix, and
their columns are orthonormal, as closely as LAPACK's own tests require (the norm of the difference, divided by size,
norm and unit roundoff, is small), or as closely as the CPU's factors. Eigenvalues are compared like any output.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from ..model.case import Case
from .operator_name import operator_name

# The norm of a difference, in units of size times norm times ULP. LAPACK's tests allow 30 of half an ULP.
RESIDUAL = 4.0
# Relative to the error of the CPU's own factors.
SLACK = 2.0

# The errors of factors, matrix by matrix; nothing where the outputs are not such factors.
Defects = Callable[[Case, Tensor, Sequence[Tensor]], list[Tensor]]


def is_another_factorization(case: Case, mine: Sequence[Any], cpus: Sequence[Any]) -> bool:
    """Whether the outputs of a case factorize its matrix as well as the CPU's, whatever their phases.

    Args:
        case: the case; its first argument is the matrix.
        mine, cpus: the outputs of both devices.
    """
    checks = DEFECTS.get(_name(case))
    named = (case.kwargs[name] for name in ("A", "self", "input") if name in case.kwargs)
    matrix: Any = next(iter(case.args), next(named, None))
    tensors, expected = ([output for output in outputs if isinstance(output, Tensor)] for outputs in (mine, cpus))
    if checks is None or not isinstance(matrix, Tensor) or [x.shape for x in tensors] != [x.shape for x in expected]:
        return False
    count, defects = checks
    ours, theirs = ([_wide(factor) for factor in outputs] for outputs in (tensors, expected))
    if len(ours) == 0 or len(ours) % count:
        return False
    unit = RESIDUAL * max(matrix.shape[-2:]) * torch.finfo(matrix.dtype).eps
    for start in range(0, len(ours), count):  # a call with out= gives its outputs twice, other values beside them
        if start and all(x.dim() < 2 for x in ours[start : start + count]):
            continue  # the memory around given outputs, which is compared separately
        own, reference = (defects(case, _wide(matrix), factors[start : start + count]) for factors in (ours, theirs))
        # A comparison with NaN is false, so NaN is not accepted here.
        if not own or not all(
            bool((x <= (SLACK * y).clamp(min=unit)).all()) for x, y in zip(own, reference, strict=True)
        ):
            return False
    return True


def _of_eigenvectors(case: Case, matrix: Tensor, factors: Sequence[Tensor]) -> list[Tensor]:
    if factors[1].shape != matrix.shape:
        return []
    values, vectors = factors
    uplo = case.kwargs.get("UPLO", case.args[1] if len(case.args) > 1 else "L")
    half = matrix.tril(-1) if str(uplo).upper() == "L" else matrix.triu(1)
    diagonal = torch.diagonal(matrix, dim1=-2, dim2=-1)
    hermitian = half + half.mH + torch.diag_embed(diagonal.real if matrix.is_complex() else diagonal)
    return [_relative(hermitian @ vectors - vectors * values.unsqueeze(-2), hermitian), _skewness(vectors)]


def _of_singular_vectors(case: Case, matrix: Tensor, factors: Sequence[Tensor]) -> list[Tensor]:
    if factors[0].dim() == matrix.dim() - 1:  # given outputs, by their names: S, U, V
        factors = [factors[1], factors[0], factors[2]]
    if factors[0].shape[:-1] != matrix.shape[:-1]:
        return []
    left, values, right = factors
    if _name(case) == "svd":
        right = right.mH
    rank = values.shape[-1]
    product = (left[..., :rank] * values.unsqueeze(-2)) @ right[..., :rank, :]
    return [_relative(product - matrix, matrix), _skewness(left), _skewness(right.mH)]


def _name(case: Case) -> str:
    """The operator's name; the entry's, `linalg.svd` or `linalg_svd.U`, where the call is wrapped."""
    names = (operator_name(case), case.entry.replace(".", "_"), case.entry.partition(".")[0])
    plain = [name.removeprefix("_") for name in names]
    return next((name for name in plain if name in DEFECTS), plain[0])


# By the operator's name, how many factors it returns, and what measures them.
DEFECTS: dict[str, tuple[int, Defects]] = {
    "linalg_eigh": (2, _of_eigenvectors),
    "linalg_svd": (3, _of_singular_vectors),
    "svd": (3, _of_singular_vectors),
}


def _relative(difference: Tensor, whole: Tensor) -> Tensor:
    """The norm of each matrix of differences relative to the norm of the whole."""
    tiny = torch.finfo(torch.float64).tiny
    relative: Tensor = torch.linalg.matrix_norm(difference) / torch.linalg.matrix_norm(whole).clamp(min=tiny)
    return relative


def _skewness(columns: Tensor) -> Tensor:
    """How far each matrix of columns is from orthonormal."""
    unit = torch.eye(columns.shape[-1], dtype=columns.dtype)
    norm: Tensor = torch.linalg.matrix_norm(columns.mH @ columns - unit)
    return norm


def _wide(x: Tensor) -> Tensor:
    return x.detach().cpu().resolve_conj().to(torch.complex128 if x.is_complex() else torch.float64)
