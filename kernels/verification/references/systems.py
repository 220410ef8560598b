"""Checks factorizations and solutions by their properties in float64, and compares them with numpy's LAPACK."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import torch

from ..matrix_kinds import (
    eig_residuals,
    eigh_residuals,
    kinds,
    median_residuals_of_lapack,
    residuals_on,
    svd_residuals,
)
from .measured import ReferenceComparison, library

_SIZES = (8, 65, 128)
_MOST_ROWS_OF_EIG = 120  # larger matrices go to the CPU
_SIZES_OF_KINDS = (33, 65, 100, 129)
_EPS = torch.finfo(torch.float32).eps


def linear_algebra() -> Iterator[ReferenceComparison]:
    """Residuals, in units of size times epsilon, of our kernels and of LAPACK through torch's CPU.

    Raises MpsmithError if scipy is not installed.
    """
    expm = library("scipy.linalg").expm
    rows: tuple[tuple[str, Callable[[int], torch.Tensor], Any, str], ...] = (
        ("svd", _general, _svd, "its properties, numpy"),
        ("eigh", _symmetric, _eigh, "its properties, numpy"),
        ("eig", _general, _eig, "its properties"),
        ("qr_reflectors", _general, _qr, "its properties"),
        ("ldl", _symmetric, _ldl, "its properties"),
        ("svd", _tall, _least_squares, "numpy, float64"),
        ("matrix_exp", _small, lambda a: _exponential(a, expm), "scipy, float64"),
    )
    for family, make, properties, reference in rows:
        for n in (min(n, _MOST_ROWS_OF_EIG) if family == "eig" else n for n in _SIZES):
            matrix = make(n)
            ours = dict(properties(matrix.to("mps")))
            cpu = dict(properties(matrix))
            for what, error in ours.items():
                yield ReferenceComparison(family, f"{what}, n = {n}", "n eps", error / n, cpu[what] / n, reference)
    yield from of_all_kinds()


def of_all_kinds() -> Iterator[ReferenceComparison]:
    """For each property, the kind and size with the largest ratio of our residual to LAPACK's median residual."""
    for family, decompose, residuals, names, largest in (
        ("svd", torch.linalg.svd, svd_residuals, ("A - U S V^H", "U^H U - 1", "V^H V - 1"), 256),
        ("eigh", torch.linalg.eigh, eigh_residuals, ("A - V w V^H", "V^H V - 1"), 256),
        ("eig", torch.linalg.eig, eig_residuals, ("A V - V w", "lengths of V"), _MOST_ROWS_OF_EIG),
    ):
        for dtype in (torch.float32, torch.complex64):
            called = f"{family}, {str(dtype).removeprefix('torch.')}"
            worst: dict[str, ReferenceComparison] = {}
            for n in (*(size for size in _SIZES_OF_KINDS if size < largest), largest):
                hermitian = family == "eigh"
                ours = residuals_on("mps", n, dtype, decompose, residuals, hermitian=hermitian)
                lapacks = median_residuals_of_lapack(n, dtype, decompose, residuals, hermitian=hermitian)
                for name, of_kinds, of_lapack in zip(names, ours.tolist(), lapacks.tolist(), strict=True):
                    for kind, own, lapack in zip(kinds(n, dtype), of_kinds, of_lapack, strict=True):
                        what = f"{called}: {name}, n = {n}, {kind}"
                        error = ReferenceComparison(family, what, "eps", own, lapack, "its properties")
                        worst[name] = max(worst.get(name, error), error, key=_ratio_to_lapack)
            yield from worst.values()


def _ratio_to_lapack(error: ReferenceComparison) -> float:
    """The ratio of our residual to LAPACK's, which counts as at least one epsilon; infinity if ours is NaN."""
    return math.inf if math.isnan(error.ours) else error.ours / max(error.cpu, 1.0)


def _general(n: int) -> torch.Tensor:
    return torch.randn(n, n, generator=torch.Generator().manual_seed(n))


def _symmetric(n: int) -> torch.Tensor:
    x = _general(n)
    return x + x.mT


def _tall(n: int) -> torch.Tensor:
    return torch.randn(2 * n, n, generator=torch.Generator().manual_seed(n))


def _small(n: int) -> torch.Tensor:
    return _general(n).div(n**0.5)


def _wide(x: torch.Tensor) -> torch.Tensor:
    x = x.cpu()
    return x.to(dtype=torch.complex128 if x.is_complex() else torch.float64)


def _norm(x: torch.Tensor) -> float:
    return float(torch.linalg.matrix_norm(x, 1)) if x.dim() > 1 else float(x.abs().max())


def _relative_error(actual: torch.Tensor, exact: torch.Tensor) -> float:
    """The norm of the difference from `exact`, relative to the norm of `exact`, in epsilons."""
    return _norm(actual - exact) / _norm(exact) / _EPS


def _from_orthonormal(columns: torch.Tensor) -> float:
    eye = torch.eye(columns.shape[-1], dtype=columns.dtype)
    return _norm(columns.mH @ columns - eye) / _EPS


def _svd(a: torch.Tensor) -> Iterator[tuple[str, float]]:
    u, s, vh = map(_wide, torch.linalg.svd(a))
    wide = _wide(a)
    yield "svd: A - U S V^H", _relative_error((u * s) @ vh, wide)
    yield "svd: U^H U - 1", _from_orthonormal(u)
    yield "svd: V^H V - 1", _from_orthonormal(vh.mH)
    numpy_result = torch.from_numpy(library("numpy.linalg").svd(wide.numpy(), compute_uv=False))
    yield "svd: singular values", _relative_error(s, numpy_result)


def _eigh(a: torch.Tensor) -> Iterator[tuple[str, float]]:
    w, v = map(_wide, torch.linalg.eigh(a))
    wide = _wide(a)
    yield "eigh: A - V w V^H", _relative_error((v * w) @ v.mH, wide)
    yield "eigh: V^H V - 1", _from_orthonormal(v)
    yield "eigh: eigenvalues", _relative_error(w, torch.from_numpy(library("numpy.linalg").eigvalsh(wide.numpy())))


def _eig(a: torch.Tensor) -> Iterator[tuple[str, float]]:
    w, v = map(_wide, torch.linalg.eig(a))
    wide = _wide(a).to(torch.complex128)
    yield "eig: A V - V w", _norm(wide @ v - v * w) / _norm(wide) / _EPS


def _qr(a: torch.Tensor) -> Iterator[tuple[str, float]]:
    reflectors, taus = torch.geqrf(a)
    q = _wide(torch.ormqr(reflectors, taus, torch.eye(a.shape[0], device=a.device)))
    yield "geqrf, ormqr: A - Q R", _relative_error(q @ _wide(reflectors).triu(), _wide(a))
    yield "geqrf, ormqr: Q^H Q - 1", _from_orthonormal(q)


def _ldl(a: torch.Tensor) -> Iterator[tuple[str, float]]:
    factors, pivots = torch.linalg.ldl_factor(a)
    b = torch.ones(a.shape[0], 1, device=a.device)
    x, wide = _wide(torch.linalg.ldl_solve(factors, pivots, b)), _wide(a)
    residual = _norm(wide @ x - _wide(b))
    yield "ldl: A x - b, beside |A| |x|", residual / (_norm(wide) * _norm(x)) / _EPS


def _least_squares(a: torch.Tensor) -> Iterator[tuple[str, float]]:
    b = torch.ones(a.shape[0], 1, device=a.device)
    x = _wide(torch.linalg.lstsq(a, b).solution)
    numpy_result = library("numpy.linalg").lstsq(_wide(a).numpy(), _wide(b).numpy(), rcond=None)[0]
    yield "lstsq: the solution", _relative_error(x, torch.from_numpy(numpy_result))


def _exponential(a: torch.Tensor, expm: Callable[[Any], Any]) -> Iterator[tuple[str, float]]:
    yield "matrix_exp", _relative_error(_wide(torch.linalg.matrix_exp(a)), torch.from_numpy(expm(_wide(a).numpy())))
