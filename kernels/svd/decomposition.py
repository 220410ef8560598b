"""Singular values and vectors by QR and one-sided Jacobi; float32, complex64."""

from __future__ import annotations

from pathlib import Path

import torch

from ...metal_limits import SIMD_WIDTH
from ..qr_reflectors.qr_reflectors import apply_reflectors, factorize
from ..runtime import rows as limits
from ..runtime.convergence import converged
from ..runtime.orthonormal import orthonormal
from ..runtime.rows import MOST_THREADS, launch_rows, row_group, short_launches
from ..runtime.shader import METAL_TYPES, Shader

_shader = Shader(str(Path(__file__).with_name("svd.py")))
# Matrices of up to so many rows need little of a core's memory, so that many are computed at once.
_SHORT = 8
# Columns that fit into a group's memory: ROOM of the Metal source.
_ROOM = {torch.float32: 48, torch.complex64: 32}
# All sweeps are launched in advance, because nothing is read back. 256 columns need 10, those of a single pair 6;
# further sweeps do nothing.
_SWEEPS, _SWEEPS_OF_ONE_PAIR = 14, 8


def decompose(
    a: torch.Tensor, name: str, *, full: bool = False, with_vectors: bool = True
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor] | None:
    """U, S and Vh of `a`, (..., m, n), with at least one element; without vectors only S is valid.

    Returns None, after the first time with a warning for `name`, if a matrix does not converge, is not finite, or has a
    value that overflows. To know it takes one read-back.
    """
    tall = a.shape[-2] >= a.shape[-1]
    columns, values, rows, infos = _factors(a if tall else a.mH, full, with_vectors)
    if not converged(infos, name):
        return None
    first, second = (columns, rows) if tall else (rows, columns)
    return first.mT, values, second.conj()


def _factors(
    tall: torch.Tensor, full: bool, with_vectors: bool
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]:
    """What `_decompose` returns, of small matrices in one launch; those that need QR to converge are done again."""
    if tall.shape[-2] <= SIMD_WIDTH:
        left, values, right, infos = _decompose_small(tall, full, with_vectors)
        on_host = infos.cpu()
        if int(on_host.max()) <= 0:
            return left, values, right, on_host
    return _decompose(tall, full, with_vectors)


def _decompose(
    tall: torch.Tensor, full: bool, with_vectors: bool
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]:
    """Left vectors as rows, singular values, right vectors as rows, and LAPACK's info of (..., m, n), m >= n.

    The columns are scaled, sorted and factorized into Q and R. With R^H = X S Y^H, Q Y has the left vectors, and X, in
    the order of the columns before, the right ones.
    """
    *batch, m, n = tall.shape
    columns = tall.mT.clone(memory_format=torch.contiguous_format).resolve_conj()
    scalings = torch.empty(*batch, 2, dtype=tall.dtype.to_real(), device=tall.device)
    _launch("svd_scaling", columns, scalings.numel() // 2, MOST_THREADS, columns, scalings, m * n)
    lengths = torch.empty(columns.shape[:-1], dtype=scalings.dtype, device=tall.device)
    _launch("svd_lengths", columns, lengths.numel(), SIMD_WIDTH, columns, lengths, m)
    factors, order = torch.empty_like(columns), torch.empty_like(lengths, dtype=torch.int32)
    operands = (columns, lengths, scalings, factors, order)
    _launch("svd_sort", columns, lengths.numel(), row_group(max(m, n)), *operands, m, n)
    taus = torch.empty(*batch, n, dtype=tall.dtype, device=tall.device)
    factorize(factors, taus)
    right, values, inner, infos = _orthogonalize(factors, order, scalings, with_vectors)
    if not with_vectors:
        return inner, values, right, infos
    whole = torch.zeros(*batch, m if full else n, m, dtype=tall.dtype, device=tall.device)
    whole[..., :n, :n].copy_(inner)
    if full:
        torch.diagonal(whole, dim1=-2, dim2=-1)[..., n:].fill_(1)
    apply_reflectors(whole, factors, taus, adjoint=False)
    return whole, values, right, infos


def _decompose_small(
    tall: torch.Tensor, full: bool, with_vectors: bool
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]:
    """The same of matrices of up to 32 rows, in one launch and without QR."""
    *batch, m, n = tall.shape
    columns = tall.mT.clone(memory_format=torch.contiguous_format).resolve_conj()
    vectors = (m if full else n) if with_vectors else 0
    left = torch.empty(*batch, vectors, m, dtype=tall.dtype, device=tall.device)
    right = torch.empty(*batch, n if with_vectors else 0, n, dtype=tall.dtype, device=tall.device)
    values = torch.empty(*batch, n, dtype=tall.dtype.to_real(), device=tall.device)
    infos = torch.empty(batch, dtype=torch.int32, device=tall.device)
    side = _SHORT if m <= _SHORT else SIMD_WIDTH
    operands = (columns, left, values, right, infos, m, n, vectors)
    _launch(f"svd_small{side}", columns, infos.numel(), SIMD_WIDTH, *operands)
    return left, values, right, infos


def _orthogonalize(
    factors: torch.Tensor, order: torch.Tensor, scalings: torch.Tensor, with_vectors: bool
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]:
    """Directions as rows, in the `order` before sorting, lengths, rotations as rows, and infos, of R in `factors`."""
    n, m = factors.shape[-2:]
    room, batch = _ROOM[factors.dtype], scalings.numel() // 2
    blocks = max(2, -(-n // (room // 2)))
    blocks += blocks % 2
    pairs = blocks // 2
    sweeps = _SWEEPS_OF_ONE_PAIR if pairs == 1 else _SWEEPS
    work = torch.empty(*factors.shape[:-1], n, dtype=factors.dtype, device=factors.device)
    turns, directions, rotations = (torch.empty_like(work if with_vectors else work[..., :0]) for _ in range(3))
    values, lengths = (torch.empty_like(order, dtype=scalings.dtype) for _ in range(2))
    infos = torch.empty(work.shape[:-2], dtype=torch.int32, device=work.device)
    busy = torch.zeros(batch, sweeps, dtype=torch.int32, device=work.device)
    moved = torch.empty(batch, pairs, dtype=torch.int32, device=work.device)
    accumulated = torch.empty(batch, pairs, room, room, dtype=work.dtype, device=work.device)
    strips = pairs * -(-n // room) * (2 if with_vectors else 1)
    _launch("svd_begin", work, batch * n, row_group(n), work, turns, factors, m, n, int(with_vectors))
    for sweep in range(sweeps):
        for turn in range(blocks - 1):
            place = (n, blocks, turn, sweep, sweeps)
            _launch("svd_pair_rotations", work, batch * pairs, MOST_THREADS, work, accumulated, busy, moved, *place)
            rotated = (work, turns, accumulated, busy, moved)
            _launch("svd_apply", work, batch * strips, MOST_THREADS, *rotated, *place, strips)
    _launch("svd_lengths", work, batch * n, SIMD_WIDTH, work, lengths, n)
    results = (work, turns, lengths, order, scalings, busy, directions, values, rotations, infos)
    _launch("svd_finish", work, batch * n, row_group(n), *results, n, sweeps, int(with_vectors))
    if with_vectors:
        products = torch.empty_like(work[..., 0])
        operands = (directions, products, values, scalings, n)
        # A vector takes a share of all before it, and two projections.
        for part in short_launches(n, 5 * n * n // row_group(n), most=limits.MOST_STEPS):
            _launch("svd_complete", work, batch, row_group(n), *operands, part.start, part.stop)
        rotations = orthonormal(rotations)
    return directions, values, rotations, infos


def _launch(name: str, matrices: torch.Tensor, groups: int, threads: int, *operands: object) -> None:
    kernel = _shader.kernel(f"{name}_{METAL_TYPES[matrices.dtype]}", matrices.device)
    launch_rows(kernel, groups, threads, *operands, int32=True)
