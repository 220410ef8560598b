"""Singular values and vectors by QR and one-sided Jacobi; float32, complex64."""

from __future__ import annotations

import torch

from ...metal_limits import SIMD_WIDTH
from ..qr_reflectors.qr_reflectors import apply_reflectors, factorize
from ..runtime import rows as limits
from ..runtime.convergence import converged
from ..runtime.native_limits import svd_on_cpu
from ..runtime.operands import require_lapack_dtype
from ..runtime.orthonormal import orthonormal
from ..runtime.outputs import check_outputs, empty_results, is_ready
from ..runtime.rows import MOST_THREADS, launch_rows, row_group, short_launches
from ..runtime.shader import METAL_TYPES, Shader
from .least_squares import linalg_lstsq_out

_shader = Shader(__file__)
# Matrices of up to so many rows need little of a core's memory, so that many are computed at once.
_SHORT = 8
_aten = torch.ops.aten
# Columns that fit into a group's memory: ROOM of the Metal source.
_ROOM = {torch.float32: 48, torch.complex64: 32}
# All sweeps are launched in advance, because nothing is read back. 256 columns need 10, those of a single pair 6;
# further sweeps do nothing.
_SWEEPS, _SWEEPS_OF_ONE_PAIR = 14, 8


def linalg_svd_u(
    A: torch.Tensor,  # noqa: N803
    full_matrices: bool = False,
    compute_uv: bool = True,
    *,
    driver: str | None = None,
    U: torch.Tensor,  # noqa: N803
    S: torch.Tensor,  # noqa: N803
    Vh: torch.Tensor,  # noqa: N803
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """`_linalg_svd.U`: `A`, (..., m, n), is U diag(S) Vh; singular values descend.

    A call with a matrix that does not converge, is not finite, or has a value that overflows goes to the CPU, which may
    raise torch.linalg.LinAlgError. To know it takes one read-back for each call.
    """
    m, n = A.shape[-2:] if A.dim() > 1 else (0, 0)
    k, real = min(m, n), A.dtype.to_real()
    batch = A.shape[:-2]
    left = (*batch, m, m if full_matrices else k) if compute_uv else (0,)
    right = (*batch, n if full_matrices else k, n) if compute_uv else (0,)
    ready = is_ready(S, (*batch, k), real) and is_ready(U, left, A.dtype) and is_ready(Vh, right, A.dtype)
    if not ready or A.dim() < 2:
        outputs, dtypes = {"U": U, "S": S, "Vh": Vh}, [A.dtype, real, A.dtype]
        check_outputs(_aten._linalg_svd.U, [A, full_matrices, compute_uv], outputs, dtypes, driver=driver)
    if driver is not None:
        raise RuntimeError(
            "torch.linalg.svd: keyword argument `driver=` is only supported on CUDA inputs with cuSOLVER backend."
        )
    if A.numel() == 0:
        for factor in (U, Vh) if compute_uv and full_matrices else ():
            factor.copy_(torch.eye(factor.shape[-1], dtype=A.dtype, device=A.device).expand(factor.shape))
        return U, S, Vh
    require_lapack_dtype(A, "linalg_svd_cpu")
    tall = m >= n
    columns, values, rows, infos = _factors(A if tall else A.mH, full_matrices, compute_uv)
    if not converged(infos, "linalg.svd"):
        for output, result in zip((U, S, Vh), _on_cpu(A.cpu(), full_matrices, compute_uv), strict=True):
            output.copy_(result)
        return U, S, Vh
    S.copy_(values)
    if compute_uv:
        first, second = (columns, rows) if tall else (rows, columns)
        U.copy_(first.mT)
        Vh.copy_(second.conj())
    return U, S, Vh


def _on_cpu(matrix: torch.Tensor, full: bool, with_vectors: bool) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """LAPACK's result. If it is NaN because |a + bi| of finite parts overflows, the matrix is scaled down first."""
    u, s, vh = _aten._linalg_svd(matrix, full, with_vectors)
    if s.isnan().any() and matrix.isfinite().all():
        u, s, vh = _aten._linalg_svd(matrix * 2.0**-8, full, with_vectors)
        s *= 2.0**8
    return u, s, vh


def linalg_svd_functional(
    A: torch.Tensor,  # noqa: N803
    full_matrices: bool = False,
    compute_uv: bool = True,
    *,
    driver: str | None = None,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """`_linalg_svd`, new tensors."""
    u, s, vh = empty_results(_aten._linalg_svd.default, [A, full_matrices, compute_uv], A.device, driver=driver)
    return linalg_svd_u(A, full_matrices, compute_uv, driver=driver, U=u, S=s, Vh=vh)


def linalg_svd(
    A: torch.Tensor,  # noqa: N803
    full_matrices: bool = True,
    *,
    driver: str | None = None,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """`linalg_svd`: torch has a composite of `_linalg_svd`, but falls back to the CPU."""
    result: tuple[torch.Tensor, torch.Tensor, torch.Tensor] = _aten._linalg_svd(A, full_matrices, True, driver=driver)
    return result


def linalg_svd_out(
    A: torch.Tensor,  # noqa: N803
    full_matrices: bool = True,
    *,
    driver: str | None = None,
    U: torch.Tensor,  # noqa: N803
    S: torch.Tensor,  # noqa: N803
    Vh: torch.Tensor,  # noqa: N803
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """`linalg_svd.U`."""
    _aten._linalg_svd.U(A, full_matrices, True, driver=driver, U=U, S=S, Vh=Vh)
    return U, S, Vh


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


KERNELS = (
    ("aten::_linalg_svd.U", linalg_svd_u),
    ("aten::linalg_lstsq.out", linalg_lstsq_out),
)
ON_CPU = (
    ("aten::_linalg_svd", linalg_svd_functional, svd_on_cpu),
    ("aten::_linalg_svd.U", linalg_svd_u, svd_on_cpu),
)
COMPOSITES = (
    ("aten::linalg_svd", linalg_svd),
    ("aten::linalg_svd.U", linalg_svd_out),
)
