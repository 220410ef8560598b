"""`renorm` of complex tensors, which torch's kernel on mps refuses: a composite of torch's operators."""

from __future__ import annotations

import torch

from ..runtime.operands import wrap_dim
from ..runtime.outputs import out_form

# The CPU adds this to a norm before it divides by it.
_EPSILON = 1e-7


def renorm(self: torch.Tensor, p: float, dim: int, maxnorm: float) -> torch.Tensor:
    """`renorm`: scales slices along `dim` down to `maxnorm` if their p-norm is larger."""
    if p <= 0:
        raise RuntimeError("renorm: non-positive-norm not supported")
    if maxnorm < 0:
        raise RuntimeError(f"renorm: expected maxnorm to be >= 0 but got {maxnorm}")
    if self.dim() < 2:
        raise RuntimeError(f"renorm: input needs at least 2 dimensions, got {self.dim()} dimensions")
    kept = wrap_dim(dim, self.dim())
    others = [d for d in range(self.dim()) if d != kept]
    norms = torch.linalg.vector_norm(self.abs(), p, others, keepdim=True)
    return self * torch.where(norms > maxnorm, maxnorm / (norms + _EPSILON), 1.0)


def renorm_(self: torch.Tensor, p: float, dim: int, maxnorm: float) -> torch.Tensor:
    """`renorm_`."""
    return self.copy_(renorm(self, p, dim, maxnorm))


renorm_out = out_form(renorm, "renorm.out")
