"""The operators of singular value decompositions; float32, complex64."""

from __future__ import annotations

import torch

from ..runtime.native_limits import svd_on_cpu
from ..runtime.operands import require_lapack_dtype
from ..runtime.outputs import check_outputs, empty_results, is_ready
from .decomposition import decompose
from .least_squares import linalg_lstsq_out

_aten = torch.ops.aten


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
    raise torch.linalg.LinAlgError.
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
    factors = decompose(A, "linalg.svd", full=full_matrices, with_vectors=compute_uv)
    if factors is None:
        factors = _on_cpu(A.cpu(), full_matrices, compute_uv)
    wanted = slice(0, 3) if compute_uv else slice(1, 2)
    for output, factor in zip((U, S, Vh)[wanted], factors[wanted], strict=True):
        output.copy_(factor)
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
