"""Checks eigenvectors, singular vectors, factors Q R and L D L^T by their definition, because they are not unique.

An eigenvector may be multiplied by any number of modulus 1, and equal eigenvalues allow any orthonormal basis of their
vectors. So vectors that differ from the CPU's are checked by what defines them: the factors multiply to the matrix, and
their columns are orthonormal, as closely as LAPACK's own tests require (the norm of the difference, divided by size,
norm and unit roundoff, is small), or as closely as the CPU's factors. Eigenvalues are compared like any output. Of two
nearly equal pivots LDL takes either. Beyond the rank of a matrix any orthonormal columns of Q serve.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from ..model.case import Case
from ..model.nested import leaves
from .operator_name import operator_name

# The norm of a difference, in units of size times norm times ULP. LAPACK's tests allow 30 of half an ULP.
RESIDUAL = 4.0
# A matrix is taken as singular if a diagonal element of R is below this times its norm: a few float32 roundings.
SINGULAR = 1e-6
# Relative to the error of the CPU's own factors.
SLACK = 2.0

# The errors of factors of a matrix, matrix by matrix of a batch; nothing where the outputs are not such factors.
Defects = Callable[[Tensor, Sequence[Tensor]], list[Tensor]]


def is_another_factorization(case: Case, mine: Sequence[Any], cpus: Sequence[Any]) -> bool:
    """Whether the outputs of a case factorize its matrix as well as the CPU's, whatever their phases.

    Args:
        case: the case. Of several matrices, as calls in a row have them, the CPU's factors say whose they are.
        mine, cpus: the outputs of both devices.
    """
    checks = DEFECTS.get(_name(case))
    tensors, expected = ([output for output in outputs if isinstance(output, Tensor)] for outputs in (mine, cpus))
    if checks is None or [x.shape for x in tensors] != [x.shape for x in expected]:
        return False
    count, defects = checks
    ours, theirs = ([_wide(factor) for factor in outputs] for outputs in (tensors, expected))
    if len(ours) == 0 or len(ours) % count:
        return False
    matrices = [
        (_unit(given), matrix) for given in _matrices(case) for matrix in _candidates(_name(case), _wide(given))
    ]
    for start in range(0, len(ours), count):  # a call with out= gives its outputs twice, other values beside them
        if start and all(x.dim() < 2 for x in ours[start : start + count]):
            continue  # the memory around given outputs, which is compared separately
        own, reference = (factors[start : start + count] for factors in (ours, theirs))
        measured = [(unit, defects(matrix, own), defects(matrix, reference)) for unit, matrix in matrices]
        fitting = [errors for errors in measured if errors[2]]
        if not fitting:
            return False
        unit, *errors = min(fitting, key=lambda row: sum(float(x.nan_to_num(torch.inf).sum()) for x in row[2]))
        # A comparison with NaN is false, so NaN is not accepted here.
        within = [bool((x <= (SLACK * y).clamp(min=unit)).all()) for x, y in zip(*errors, strict=False)]
        if len(within) < len(errors[1]) or not all(within):
            return False
    return True


def are_undetermined(outputs: Sequence[Any], position: int) -> bool:
    """Whether an output has vectors, factors or pivots, which are not unique; not values, nor `info`."""
    output = outputs[position]
    if output.is_floating_point() or output.is_complex():
        return bool(output.dim() > 1)
    return bool(output.dim() + 1 == max(x.dim() for x in outputs if isinstance(x, Tensor)))


def with_cpu_rounding_errors(case: Case, position: int, mine: Sequence[Any], cpus: Sequence[Any]) -> Tensor | None:
    """An output of the device with the CPU's values where both are rounding errors beside the largest one.

    LAPACK promises eigenvalues and singular values as exactly as the largest is known, and the least ones of a matrix
    whose columns differ by more than the precision can be anything below that.

    Args:
        case: the case; only those of operators that return such values give something.
        position: of the output that differs.
        mine, cpus: the outputs of both devices.
    """
    actual, expected = mine[position], cpus[position]
    dimensions = {output.dim() for output in cpus if isinstance(output, Tensor)}
    if _name(case) not in DEFECTS or not isinstance(actual, Tensor) or actual.shape != expected.shape:
        return None
    if not 0 < expected.dim() < max(dimensions) or not expected.is_floating_point() or not expected.numel():
        return None
    own, reference = actual.detach().cpu(), expected.detach()
    unit = max(map(_unit, _matrices(case)), default=0.0)
    largest = reference.abs().amax(-1, keepdim=True).clamp(max=torch.finfo(reference.dtype).max)
    is_error = torch.maximum(own.abs(), reference.abs()) <= unit * largest
    return torch.where(is_error, reference, own).to(actual.device)


def _matrices(case: Case) -> list[Tensor]:
    """The arguments that may be matrices to factorize."""
    tensors = [given for given in leaves((case.args, case.kwargs)) if isinstance(given, Tensor) and given.dim() > 1]
    return [given for given in tensors if given.is_floating_point() or given.is_complex()]


def _unit(matrix: Tensor) -> float:
    """The error, relative to the norm of a matrix, that LAPACK's tests accept."""
    return RESIDUAL * max(matrix.shape[-2:]) * torch.finfo(matrix.dtype).eps


def _candidates(name: str, matrix: Tensor) -> list[Tensor]:
    """The matrices that an argument may stand for: a Hermitian matrix may be given by either triangle."""
    if name in ("linalg_svd", "svd", "linalg_qr", "qr") or matrix.shape[-1] != matrix.shape[-2]:
        return [matrix]
    diagonal, lower = torch.diag_embed(torch.diagonal(matrix, dim1=-2, dim2=-1)), matrix.tril(-1)
    hermitian = diagonal.real.to(matrix.dtype)
    if name == "linalg_eigh":
        return [half + half.mH + hermitian for half in (lower, matrix.triu(1))]
    return [lower + lower.mT + diagonal, lower + lower.mH + hermitian]


def _of_eigenvectors(matrix: Tensor, factors: Sequence[Tensor]) -> list[Tensor]:
    values, vectors = factors
    if vectors.shape != matrix.shape or vectors.dtype is not matrix.dtype:
        return []
    values = _with_finite_values(values, vectors, matrix, vectors)
    return [_relative(matrix @ vectors - vectors * values.unsqueeze(-2), matrix), _skewness(vectors)]


def _of_singular_vectors(matrix: Tensor, factors: Sequence[Tensor]) -> list[Tensor]:
    if factors[0].dim() == matrix.dim() - 1:  # given outputs, by their names: S, U, V
        factors = [factors[1], factors[0], factors[2]]
    left, values, right = factors
    if left.shape[:-1] != matrix.shape[:-1] or right.shape[-1:] != matrix.shape[-1:] or left.dtype is not matrix.dtype:
        return []
    rank = values.shape[-1]
    values = _with_finite_values(values, left[..., :rank], matrix, right[..., :rank, :].mH)
    product = (left[..., :rank] * values.unsqueeze(-2)) @ right[..., :rank, :]
    return [_relative(product - matrix, matrix), _skewness(left), _skewness(right.mH)]


def _of_columns(matrix: Tensor, factors: Sequence[Tensor]) -> list[Tensor]:
    """Whether the right vectors are columns, as `torch.svd` returns them."""
    return _of_singular_vectors(matrix, [*factors[:2], factors[2].mH if factors[2].dim() > 1 else factors[2]])


def _of_qr(matrix: Tensor, factors: Sequence[Tensor]) -> list[Tensor]:
    """Only of singular matrices: otherwise LAPACK's signs determine Q and R."""
    q, r = factors
    if r.shape[-1:] != matrix.shape[-1:] or r.dim() != matrix.dim() or r.dtype is not matrix.dtype:
        return []
    diagonal, norm = r.diagonal(dim1=-2, dim2=-1).abs(), torch.linalg.matrix_norm(matrix)
    if not diagonal.numel() or bool((diagonal.amin(-1) > SINGULAR * norm).any()):
        return []
    below = _relative(r.tril(-1), matrix)
    if not q.numel() and r.numel():  # mode "r"
        gram = matrix.mH @ matrix
        return [_relative(r.mH @ r - gram, gram), below]
    if q.shape[:-1] != matrix.shape[:-1] or q.shape[-1] != r.shape[-2]:
        return []
    return [_relative(q @ r - matrix, matrix), _skewness(q), below]


def _of_ldl(matrix: Tensor, factors: Sequence[Tensor]) -> list[Tensor]:
    pivots = next((x for x in factors[1:] if x.shape == matrix.shape[:-1]), None)
    if pivots is None or factors[0].shape != matrix.shape or factors[0].dtype is not matrix.dtype or not pivots.numel():
        return []
    n = matrix.shape[-1]
    if bool(((pivots.abs() < 1) | (pivots.abs() > n)).any()):
        return []
    pairs = zip(factors[0].reshape(-1, n, n), pivots.reshape(-1, n).long().tolist(), strict=True)
    products = [_product(*pair, hermitian=torch.equal(matrix, matrix.mH)) for pair in pairs]
    return [_relative(torch.stack(products).view(matrix.shape) - matrix, matrix)]


def _product(factor: Tensor, pivots: list[int], *, hermitian: bool) -> Tensor:
    """The matrix of a factor and pivots as LAPACK's ?sytrf and ?hetrf store them for the lower triangle."""
    product, starts = torch.zeros_like(factor), [0]
    while starts[-1] < len(pivots):
        starts.append(min(starts[-1] + (1 if pivots[starts[-1]] > 0 else 2), len(pivots)))
    for start, end in zip(starts[-2::-1], starts[:0:-1], strict=True):
        columns = factor[start:, start:end].tril(-1)
        block = torch.diag(factor.diagonal()[start:end])
        if end - start > 1:
            corner, columns[1, 0] = columns[1, 0].clone(), 0
            block[1, 0], block[0, 1] = corner, corner.conj() if hermitian else corner
        columns += torch.eye(*columns.shape, dtype=factor.dtype)
        product[start:, start:] += columns @ block @ (columns.mH if hermitian else columns.mT)
        exchanged = [end - 1, abs(pivots[start]) - 1]
        product[exchanged] = product[exchanged[::-1]]
        product[:, exchanged] = product[:, exchanged[::-1]]
    return product


def _with_finite_values(values: Tensor, left: Tensor, matrix: Tensor, right: Tensor) -> Tensor:
    """The values, those beyond the largest number of their dtype by their vectors: left^H matrix right."""
    if not values.isinf().any():
        return values
    sizes = (left.conj() * (matrix @ right)).sum(-2).abs()
    return torch.where(values.isinf(), sizes.copysign(values), values)


def _name(case: Case) -> str:
    """The operator's name; the entry's (`linalg.svd` or `linalg_svd.U`) if the call is wrapped."""
    names = (operator_name(case), case.entry.replace(".", "_"), case.entry.partition(".")[0])
    plain = [name.removeprefix("_") for name in names]
    return next((name for name in plain if name in DEFECTS), plain[0])


# By the operator's name, how many factors it returns, and what measures them.
DEFECTS: dict[str, tuple[int, Defects]] = {
    "linalg_eigh": (2, _of_eigenvectors),
    "linalg_ldl_factor": (2, _of_ldl),
    "linalg_ldl_factor_ex": (3, _of_ldl),
    "linalg_qr": (2, _of_qr),
    "linalg_svd": (3, _of_singular_vectors),
    "qr": (2, _of_qr),
    "svd": (3, _of_columns),
}


def _relative(difference: Tensor, whole: Tensor) -> Tensor:
    """The norm of each matrix of differences, relative to the norm of the matrix in `whole`."""
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
