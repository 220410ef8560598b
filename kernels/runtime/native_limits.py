"""Which calls torch's own linear algebra kernels compute on the CPU although they are native (torch 2.14 and later).

Their threadgroup holds a matrix in memory; larger ones do not fit, and small batches are left to LAPACK
(aten/src/ATen/native/mps/operations/LinearAlgebra.mm of torch 2.15).
"""

from __future__ import annotations

import torch

# Bytes that a group of threads can share on all of Apple's GPUs.
_SHARED_BYTES = 32_768
# Elements of all matrices together from which on torch uses the GPU.
_LEAST_OF_SVD = 8_192
_LEAST_OF_EIGH = 12_288
_DTYPES = (torch.float32, torch.complex64)


def svd_on_cpu(
    A: torch.Tensor,  # noqa: N803
    full_matrices: bool = False,
    compute_uv: bool = True,
    *,
    driver: str | None = None,
    **outputs: torch.Tensor,
) -> bool:
    """Whether torch's own `_linalg_svd` computes a call on the CPU: a matrix is too large, or the batch is small."""
    if A.dtype not in _DTYPES or driver is not None or not A.numel() or A.dim() < 2:
        return False
    m, n = A.shape[-2:]
    return m * n * A.element_size() > _SHARED_BYTES or A.numel() < _LEAST_OF_SVD


def eigh_on_cpu(
    A: torch.Tensor,  # noqa: N803
    UPLO: str = "L",  # noqa: N803
    compute_v: bool = True,
    **outputs: torch.Tensor,
) -> bool:
    """As `svd_on_cpu`, for `_linalg_eigh`, whose threadgroup holds the matrix and its eigenvectors."""
    if A.dtype not in _DTYPES or not A.numel() or A.dim() < 2:
        return False
    return 2 * A.shape[-1] ** 2 * A.element_size() > _SHARED_BYTES or A.numel() < _LEAST_OF_EIGH
