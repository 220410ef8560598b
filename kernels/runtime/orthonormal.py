"""Makes accumulated rotations orthonormal again."""

from __future__ import annotations

import torch

from .autocast import without_autocast


@without_autocast
def orthonormal(rows: torch.Tensor) -> torch.Tensor:
    """Rows (..., n, n), orthonormal up to rounding, after one step of Newton's iteration for the polar factor.

    N. J. Higham, SIAM Journal on Scientific and Statistical Computing 7, 1986, in the form without an inverse.
    """
    gap = torch.eye(rows.shape[-1], dtype=rows.dtype, device=rows.device) - rows @ rows.mH
    return rows + (gap @ rows) / 2
