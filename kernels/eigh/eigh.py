"""Eigenvalues and eigenvectors of symmetric and Hermitian matrices by Jacobi's method; float32, complex64."""

from __future__ import annotations

import torch

from ..runtime.convergence import converged
from ..runtime.native_limits import eigh_on_cpu
from ..runtime.operands import require_lapack_dtype
from ..runtime.orthonormal import orthonormal
from ..runtime.outputs import check_outputs, empty_results, is_ready
from ..runtime.rows import MOST_THREADS, launch_rows, row_group
from ..runtime.shader import METAL_TYPES, MetalKernel, Shader
from .square_root import linalg_matrix_sqrth

_shader = Shader(__file__)
_aten = torch.ops.aten
# Rows that fit into a group's memory: ROOM of the Metal source.
_ROOM = {torch.float32: 48, torch.complex64: 32}
# Sweeps that are launched before the first read-back, and between others; those that find nothing to turn do nothing.
# Blocks need 5 to 8, those of graded matrices up to twice as many.
_SWEEPS, _MOST_READ_BACKS = 8, 4


def linalg_eigh_eigenvalues(
    A: torch.Tensor,  # noqa: N803
    UPLO: str = "L",  # noqa: N803
    compute_v: bool = True,
    *,
    eigenvalues: torch.Tensor,
    eigenvectors: torch.Tensor,
) -> tuple[torch.Tensor, torch.Tensor]:
    """`_linalg_eigh.eigenvalues`: of `A`, (..., n, n), the triangle `UPLO` is read; eigenvalues ascend.

    A call with a matrix that does not converge or is not finite goes to the CPU, which may raise
    torch.linalg.LinAlgError. To know it takes one read-back for each call.
    """
    real = A.dtype.to_real()
    square = A.dim() > 1 and A.shape[-1] == A.shape[-2]
    ready = square and is_ready(eigenvalues, A.shape[:-1], real)
    if not (ready and is_ready(eigenvectors, A.shape if compute_v else (0,), A.dtype)) or UPLO not in ("L", "U"):
        outputs = {"eigenvalues": eigenvalues, "eigenvectors": eigenvectors}
        check_outputs(_aten._linalg_eigh.eigenvalues, [A, UPLO, compute_v], outputs, [real, A.dtype])
    if A.numel() == 0:
        return eigenvalues, eigenvectors
    require_lapack_dtype(A, "linalg_eigh_cpu")
    n = A.shape[-1]
    matrices = A.contiguous()
    in_place = eigenvalues.is_contiguous() and (not compute_v or eigenvectors.mT.is_contiguous())
    values = eigenvalues if in_place else torch.empty(A.shape[:-1], dtype=real, device=A.device)
    vectors = eigenvectors.mT if in_place and compute_v else torch.empty_like(matrices if compute_v else matrices[:0])
    solve = _solve_small if n <= _ROOM[A.dtype] else _solve_large
    infos = solve(matrices, values, vectors, upper=UPLO.upper() == "U", with_vectors=compute_v)
    if not converged(infos, "linalg.eigh"):
        of_the_cpu = _aten._linalg_eigh(A.cpu(), UPLO, compute_v)
        return eigenvalues.copy_(of_the_cpu[0]), eigenvectors.copy_(of_the_cpu[1])
    if not in_place:
        eigenvalues.copy_(values)
        if compute_v:
            eigenvectors.copy_(vectors.mT)
    return eigenvalues, eigenvectors


def linalg_eigh(
    A: torch.Tensor,  # noqa: N803
    UPLO: str = "L",  # noqa: N803
    compute_v: bool = True,
) -> tuple[torch.Tensor, torch.Tensor]:
    """`_linalg_eigh`, new tensors."""
    eigenvalues, eigenvectors = empty_results(_aten._linalg_eigh.default, [A, UPLO, compute_v], A.device)
    return linalg_eigh_eigenvalues(A, UPLO, compute_v, eigenvalues=eigenvalues, eigenvectors=eigenvectors)


def _solve_small(
    matrices: torch.Tensor,
    values: torch.Tensor,
    vectors: torch.Tensor,
    *,
    upper: bool,
    with_vectors: bool,
) -> torch.Tensor:
    """One launch, a group a matrix; rows of `vectors` become eigenvectors. Returns LAPACK's infos."""
    n = matrices.shape[-1]
    infos = torch.empty(matrices.shape[:-2], dtype=torch.int32, device=matrices.device)
    kernel = _kernel("eigh_small", matrices)
    operands = (matrices, values, vectors, infos, n, int(upper), int(with_vectors))
    launch_rows(kernel, infos.numel(), row_group(n * n // 4), *operands, int32=True)
    return infos


def _solve_large(
    matrices: torch.Tensor,
    values: torch.Tensor,
    vectors: torch.Tensor,
    *,
    upper: bool,
    with_vectors: bool,
) -> torch.Tensor:
    """Two launches for each round of rotations between pairs of blocks, each over all matrices. Returns the infos."""
    n, room = matrices.shape[-1], _ROOM[matrices.dtype]
    infos = torch.empty(matrices.shape[:-2], dtype=torch.int32, device=matrices.device)
    batch = infos.numel()
    blocks = -(-n // (room // 2))
    blocks += blocks % 2
    pairs = blocks // 2
    work, unordered = torch.empty_like(matrices), torch.empty_like(vectors)
    scalings = torch.empty(batch, 3, dtype=values.dtype, device=values.device)
    lows = torch.zeros(batch, n, dtype=values.dtype, device=values.device)
    moved = torch.empty(batch, pairs, dtype=torch.int32, device=values.device)
    accumulated = torch.empty(batch, pairs, room, room, dtype=matrices.dtype, device=values.device)

    def launch(name: str, groups: int, threads: int, *operands: object) -> None:
        launch_rows(_kernel(name, matrices), groups, threads, *operands, int32=True)

    launch("eigh_scaling", batch, MOST_THREADS, matrices, scalings, n, int(upper))
    options = (n, int(upper), int(with_vectors))
    launch("eigh_begin", batch * n, row_group(n), matrices, scalings, work, unordered, *options)
    tiles = pairs * (pairs - 1) // 2 + (pairs * -(-n // room) if with_vectors else 0)
    on_host = infos
    for _ in range(_MOST_READ_BACKS):
        busy = torch.zeros(batch, _SWEEPS, dtype=torch.int32, device=values.device)
        for sweep in range(_SWEEPS):
            for turn in range(blocks - 1):
                place, rotations = (n, blocks, turn, sweep, _SWEEPS), (accumulated, busy, moved)
                launch("eigh_pair_rotations", batch * pairs, MOST_THREADS, work, lows, *rotations, scalings, *place)
                launch("eigh_apply", batch * tiles, MOST_THREADS, work, unordered, *rotations, *place, tiles)
        results = (values, vectors, infos, n, _SWEEPS, int(with_vectors))
        launch("eigh_finish", batch * n, row_group(n), work, unordered, scalings, busy, *results)
        on_host = infos.cpu()
        if int(on_host.max()) <= 0:
            break
    if with_vectors:
        vectors.copy_(orthonormal(vectors))
    return on_host


def _kernel(name: str, matrices: torch.Tensor) -> MetalKernel:
    return _shader.kernel(f"{name}_{METAL_TYPES[matrices.dtype]}", matrices.device)


KERNELS = (
    ("aten::_linalg_eigh.eigenvalues", linalg_eigh_eigenvalues),
    ("aten::linalg_matrix_sqrth", linalg_matrix_sqrth),
)
ON_CPU = (
    ("aten::_linalg_eigh", linalg_eigh, eigh_on_cpu),
    ("aten::_linalg_eigh.eigenvalues", linalg_eigh_eigenvalues, eigh_on_cpu),
)
