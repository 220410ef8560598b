"""`renorm` of complex tensors, which torch's kernel on mps refuses: a composite of torch's operators."""

from __future__ import annotations

import torch

from ..runtime.outputs import empty_results, out_form

# The CPU adds this to a norm before it divides by it.
_EPSILON = 1e-7


def renorm(self: torch.Tensor, p: float, dim: int, maxnorm: float) -> torch.Tensor:
    """`renorm`: scales slices along `dim` down to `maxnorm` if their p-norm is larger."""
    empty_results(torch.ops.aten.renorm.default, [self, p, dim, maxnorm], torch.device("meta"))
    others = [d for d in range(self.dim()) if d != dim % self.dim()]
    norms = torch.linalg.vector_norm(self.abs(), p, others, keepdim=True)
    return self * torch.where(norms > maxnorm, maxnorm / (norms + _EPSILON), 1.0)


def renorm_(self: torch.Tensor, p: float, dim: int, maxnorm: float) -> torch.Tensor:
    """`renorm_`."""
    return self.copy_(renorm(self, p, dim, maxnorm))


renorm_out = out_form(renorm, "renorm.out")


def is_complex(self: torch.Tensor, *arguments: object, **options: object) -> bool:
    """Whether torch's own kernel on mps refuses the dtype."""
    return self.is_complex()
