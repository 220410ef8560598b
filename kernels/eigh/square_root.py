"""The square root of Hermitian matrices, from their eigenvalues and eigenvectors (torch 2.14 and later)."""

from __future__ import annotations

import torch

from ..runtime.autocast import without_autocast
from ..runtime.operands import require_lapack_dtype, require_square, scalar_type

_NAME = "linalg.matrix_sqrth"


@without_autocast
def linalg_matrix_sqrth(self: torch.Tensor) -> torch.Tensor:
    """`linalg_matrix_sqrth`: reads the lower triangle of `self`, (..., n, n).

    The result is NaN for a matrix with a negative eigenvalue.
    """
    _check_matrices(self)
    eigenvalues, eigenvectors = torch.linalg.eigh(self)
    root: torch.Tensor = (eigenvectors * eigenvalues.sqrt().unsqueeze(-2)) @ eigenvectors.mH
    return root


def _check_matrices(x: torch.Tensor) -> None:
    """Raise what the CPU raises."""
    require_square(x, _NAME)
    if not (x.is_floating_point() or x.is_complex()):
        name = scalar_type(x.dtype)
        raise RuntimeError(f"{_NAME}: Expected a floating point or complex tensor as input. Got {name}")
    if x.dtype in (torch.float16, torch.bfloat16):
        raise RuntimeError(f"{_NAME}: Low precision dtypes not supported. Got {scalar_type(x.dtype)}")
    require_lapack_dtype(x, "linalg_eigh_cpu")
