"""24 kinds of square matrices that are hard to decompose, and the residuals of their factors compared with LAPACK's.

Most of them are those of LAPACK's own tests (J. Demmel and A. McKenney, LAPACK Working Note 9, 1989).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch

from ...audit.releases.surface.profiles import coverage_profile
from ...simulator.opening import device_of_this_process
from ..runtime.convergence import reasons_for_the_cpu

# LAPACK's residual counts as at least the root of the number of rows, in epsilons: rounding of the results alone. By
# chance it is small: of `ones` with 17, 65 or 257 rows it is below 1, and 2.7 to 6.5 at the others of 60 to 67.
_ROUNDING = 1.0
_ALLOWED = 3.0  # times LAPACK's residual

# Sizes for the cases of families: odd and even, inside of a block of rows, and across the borders of blocks.
_SIZES = (1, 2, 3, 5, 24, 33, 50, 65)
# Further ones on a real device. On the simulated one they take minutes: the page of references has them.
_LARGE = (100, 128, 129, 192, 255, 256)

# From a matrix and its factors: residuals in epsilons.
Residuals = Callable[[torch.Tensor, Sequence[torch.Tensor]], tuple[torch.Tensor, ...]]


def kinds(n: int, dtype: torch.dtype) -> dict[str, torch.Tensor]:
    """The (n, n) matrices of float32 or complex64, by name; the same in each call."""
    wide = torch.complex128 if dtype.is_complex else torch.float64
    generator = torch.Generator().manual_seed(n)

    def random(rows: int, columns: int) -> torch.Tensor:
        return torch.randn(rows, columns, dtype=wide, generator=generator)

    def graded(exponent: float) -> torch.Tensor:
        return torch.logspace(0, exponent, n, dtype=torch.float64)

    left, right = (torch.linalg.qr(random(n, n))[0] for _ in range(2))
    eye, places, half = torch.eye(n, dtype=wide), torch.arange(n), max(1, n // 2)
    upper = torch.diag(torch.ones(n - 1, dtype=wide), 1)
    skew = random(n, n)
    matrices = {
        "random": random(n, n),
        "singular values to 1e-6": (left * graded(-6)) @ right,
        "singular values to 1e-20": (left * graded(-20)) @ right,
        "rows to 1e-30": random(n, n) * graded(-30)[:, None],
        "columns to 1e-30": random(n, n) * graded(-30),
        "columns to 1e30": random(n, n) * graded(30),
        "huge": random(n, n) * 2.5e36,
        "tiny": random(n, n) * 1e-33,
        # Of subnormal numbers alone a GPU, which flushes them, sees a matrix of zeros.
        "a row of subnormal numbers": random(n, n) * torch.where((places == 0) & (n > 1), 1e-41, 1.0)[:, None],
        "rank 1": random(n, 1) @ random(1, n),
        "rank n/2": random(n, half) @ random(half, n),
        "identity": eye,
        "zeros": torch.zeros(n, n, dtype=wide),
        "ones": torch.ones(n, n, dtype=wide),
        "Jordan block": 0.5 * eye + upper,
        "Jordan block, far from normal": eye + 1e4 * upper,
        "cyclic permutation": eye.roll(1, 0),
        "Hilbert": (1 / (places[:, None] + places + 1.0)).to(wide),
        "Vandermonde": torch.vander(torch.linspace(0, 1, n, dtype=torch.float64)).to(wide),
        "Kahan": (eye - 0.285 * torch.ones_like(eye).triu(1)) * 0.958 ** places[:, None],
        "one huge element": random(n, n) + 1e15 * (torch.arange(n * n).view(n, n) == n * n // 2),
        "clustered": (left * (1 + 1e-7 * random(n, 1)[:, 0].real)) @ left.mH,
        "triangular": random(n, n).triu(),
        "skew": skew - skew.mH,
    }
    return {name: matrix.to(dtype) for name, matrix in matrices.items()}


def sizes(dtype: torch.dtype, largest: int = _LARGE[-1]) -> Iterator[tuple[Any, ...]]:
    """The inputs of `within_lapack_residuals`, for `KernelCall`. `largest`: the most rows that the kernel takes."""
    simulated = device_of_this_process(coverage_profile).simulated
    for n in _SIZES if simulated else _SIZES + _LARGE:
        if n <= largest:
            yield torch.tensor(n), dtype


def within_lapack_residuals(
    decompose: Callable[[torch.Tensor], Sequence[torch.Tensor]], residuals: Residuals, *, hermitian: bool = False
) -> Callable[[torch.Tensor, torch.dtype], torch.Tensor]:
    """A call for `KernelCall`: whether each residual of each kind of matrix is at most 3 times LAPACK's.

    `decompose`: gets all kinds as one batch (kinds, n, n). `hermitian`: it gets their Hermitian parts.
    """

    def call(size: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
        n = int(size)
        ours, lapack = (
            residuals_on(device, n, dtype, decompose, residuals, hermitian=hermitian) for device in (size.device, "cpu")
        )
        answers: torch.Tensor = ours <= _ALLOWED * lapack.clamp(min=_ROUNDING * math.sqrt(n))
        return answers.to(size.device)

    return call


def residuals_on(
    device: torch.device | str,
    n: int,
    dtype: torch.dtype,
    decompose: Callable[[torch.Tensor], Sequence[torch.Tensor]],
    residuals: Residuals,
    *,
    hermitian: bool = False,
) -> torch.Tensor:
    """The residuals (residual, kind) of a device, in epsilons; those of the CPU are LAPACK's.

    NaN for factors that are not finite. NaN for all if the kernel did not converge and left the call to the CPU.
    """
    batch = torch.stack(list(kinds(n, dtype).values()))
    if hermitian:
        batch = batch / 2 + batch.mH / 2
    wide = batch.to(torch.complex128)
    scale = wide.abs().amax((-2, -1), keepdim=True)
    scale[scale == 0] = 1
    with reasons_for_the_cpu() as reasons:
        factors = [factor.cpu().to(torch.complex128) for factor in decompose(batch.to(device))]
    # Values are scaled as the matrices are; vectors are not.
    factors = [factor / scale[..., 0] if factor.dim() == 2 else factor for factor in factors]
    measured = torch.stack(residuals(wide / scale, factors)) / torch.finfo(dtype).eps
    return torch.full_like(measured, math.nan) if reasons else measured


def median_residuals_of_lapack(
    n: int,
    dtype: torch.dtype,
    decompose: Callable[[torch.Tensor], Sequence[torch.Tensor]],
    residuals: Residuals,
    *,
    hermitian: bool = False,
) -> torch.Tensor:
    """LAPACK's residuals (residual, kind), in epsilons: the median of the sizes from n - 2 to n + 2."""
    sizes_around = range(max(1, n - 2), n + 3)
    return torch.stack(
        [residuals_on("cpu", size, dtype, decompose, residuals, hermitian=hermitian) for size in sizes_around]
    ).median(0)[0]


def svd_residuals(a: torch.Tensor, factors: Sequence[torch.Tensor]) -> tuple[torch.Tensor, ...]:
    """The norms of A - U S Vh relative to A, of U^H U - 1, and of Vh Vh^H - 1, for factors U, S and Vh."""
    u, s, vh = factors
    return _relative_norm(a - (u * s.unsqueeze(-2)) @ vh, a), _from_orthonormal(u), _from_orthonormal(vh.mH)


def eigh_residuals(a: torch.Tensor, factors: Sequence[torch.Tensor]) -> tuple[torch.Tensor, ...]:
    """The norms of A - V w V^H relative to A, and of V^H V - 1, for factors w and V."""
    w, v = factors
    return _relative_norm(a - (v * w.unsqueeze(-2)) @ v.mH, a), _from_orthonormal(v)


def eig_residuals(a: torch.Tensor, factors: Sequence[torch.Tensor]) -> tuple[torch.Tensor, ...]:
    """The longest column of A V - V w relative to A, and the largest deviation of a column's length from 1."""
    w, v = factors
    lengths = torch.linalg.vector_norm(v, dim=-2)
    return (
        torch.linalg.vector_norm(a @ v - v * w.unsqueeze(-2), dim=-2).amax(-1) / _norm(a),
        (lengths - 1).abs().amax(-1),
    )


def _norm(a: torch.Tensor) -> torch.Tensor:
    norm: torch.Tensor = torch.linalg.matrix_norm(a)
    return torch.where(norm == 0, 1, norm)


def _relative_norm(rest: torch.Tensor, a: torch.Tensor) -> torch.Tensor:
    norm: torch.Tensor = torch.linalg.matrix_norm(rest)
    return norm / _norm(a)


def _from_orthonormal(columns: torch.Tensor) -> torch.Tensor:
    eye = torch.eye(columns.shape[-1], dtype=columns.dtype)
    distance: torch.Tensor = torch.linalg.matrix_norm(columns.mH @ columns - eye)
    return distance
