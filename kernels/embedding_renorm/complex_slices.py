"""`renorm` of complex tensors, which torch's kernel on mps refuses: composed of torch's own operators."""

from __future__ import annotations

import torch

from ..runtime.outputs import check_outputs, empty_results

# What the CPU adds to a norm before it divides by it.
_LEAST_NORM = 1e-7


def renorm(self: torch.Tensor, p: float, dim: int, maxnorm: float) -> torch.Tensor:
    """`renorm`: slices along `dim` whose p-norm is larger than `maxnorm` are scaled down to it."""
    empty_results(torch.ops.aten.renorm.default, [self, p, dim, maxnorm], torch.device("meta"))
    others = [d for d in range(self.dim()) if d != dim % self.dim()]
    norms = torch.linalg.vector_norm(self.abs(), p, others, keepdim=True)
    return self * torch.where(norms > maxnorm, maxnorm / (norms + _LEAST_NORM), 1.0)


def renorm_(self: torch.Tensor, p: float, dim: int, maxnorm: float) -> torch.Tensor:
    """`renorm_`."""
    return self.copy_(renorm(self, p, dim, maxnorm))


def renorm_out(self: torch.Tensor, p: float, dim: int, maxnorm: float, *, out: torch.Tensor) -> torch.Tensor:
    """`renorm.out`."""
    result = renorm(self, p, dim, maxnorm)
    check_outputs(torch.ops.aten.renorm.out, [self, p, dim, maxnorm], {"out": out}, [self.dtype])
    return out.copy_(result)


def is_complex(self: torch.Tensor, *arguments: object, **options: object) -> bool:
    """Whether torch's own kernel on mps refuses the dtype."""
    return self.is_complex()
