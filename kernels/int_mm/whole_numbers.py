"""Products of integers and complex numbers, as composites: torch's kernels on mps refuse these dtypes.

Integer sums wrap as on the CPU.
"""

from __future__ import annotations

import torch

from ..runtime.outputs import empty_results, out_form

_WHOLE = frozenset({torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8})


def linear(input: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None = None) -> torch.Tensor:
    """`linear`: `input` times the transposed weight, (outputs, inputs) or (inputs), plus a bias."""
    product: torch.Tensor = torch.matmul(input, weight.mT if weight.dim() == 2 else weight)
    return product if bias is None else product.add_(bias)


def addr(
    self: torch.Tensor, vec1: torch.Tensor, vec2: torch.Tensor, *, beta: float | int = 1, alpha: float | int = 1
) -> torch.Tensor:
    """`addr`: beta self + alpha times the outer product of the vectors; "or" and "and" for bools."""
    scalars = {"beta": beta, "alpha": alpha}
    (shadow,) = empty_results(torch.ops.aten.addr.default, [self, vec1, vec2], torch.device("meta"), **scalars)
    outer = vec1.unsqueeze(1).to(shadow.dtype) * vec2.to(shadow.dtype)
    if shadow.dtype == torch.bool:
        product = outer if alpha else torch.zeros_like(outer)
        return product | self if beta else product
    product = outer if alpha == 1 else outer * alpha
    return (product if beta == 0 else product + (self if beta == 1 else self * beta)).expand(shadow.shape)


addr_out = out_form(addr, "addr.out", casts=True)


def is_whole(input: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None = None) -> bool:
    """Whether torch's own linear on mps refuses the dtype."""
    return input.dtype in _WHOLE


def are_refused(self: torch.Tensor, vec1: torch.Tensor, vec2: torch.Tensor, **options: object) -> bool:
    """Whether torch's own addr on mps refuses the dtypes, or upstream expects it to fail: complex ones."""
    dtype = self.dtype
    if dtype is vec1.dtype is vec2.dtype:
        return not dtype.is_floating_point
    dtypes = (dtype, vec1.dtype, vec2.dtype)
    return any(dtype.is_complex for dtype in dtypes) or not any(dtype.is_floating_point for dtype in dtypes)
