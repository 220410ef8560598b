"""Products of integers and complex numbers, as composites: torch's kernels on mps refuse these dtypes.

Integer sums wrap as on the CPU.
"""

from __future__ import annotations

import torch

from ..runtime.layout import expanded
from ..runtime.operands import require_device, scalar_type
from ..runtime.outputs import copy_to_output, require_castable

WHOLE = frozenset({torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8})


def linear(input: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None = None) -> torch.Tensor:
    """`linear`: `input` times the transposed weight, (outputs, inputs) or (inputs), plus a bias."""
    for other in (weight, input if bias is None else bias):
        if input.dtype != other.dtype:
            given = f"{scalar_type(input.dtype)} and {scalar_type(other.dtype)}"
            raise RuntimeError(f"self and mat2 must have the same dtype, but got {given}")
    product: torch.Tensor = torch.matmul(input, weight.mT if weight.dim() == 2 else weight)
    return product if bias is None else product.add_(bias)


def addr(
    self: torch.Tensor, vec1: torch.Tensor, vec2: torch.Tensor, *, beta: float | int = 1, alpha: float | int = 1
) -> torch.Tensor:
    """`addr`: beta self + alpha times the outer product of the vectors; "or" and "and" for bools."""
    for name, vector in (("vec1", vec1), ("vec2", vec2)):
        if vector.dim() != 1:
            raise RuntimeError(f"addr: Expected 1-D argument {name}, but got {vector.dim()}-D")
    require_device(self, {"vec1": vec1, "vec2": vec2}, "addr")
    dtype = self.dtype
    if not dtype == vec1.dtype == vec2.dtype:
        dtype = torch.promote_types(torch.promote_types(dtype, vec1.dtype), vec2.dtype)
        self, vec1, vec2 = self.to(dtype), vec1.to(dtype), vec2.to(dtype)
    _require_scalar("beta", beta, dtype)
    _require_scalar("alpha", alpha, dtype)
    summand, outer = expanded(self, (vec1.shape[0], vec2.shape[0])), vec1.unsqueeze(1) * vec2
    if dtype == torch.bool:
        product = outer if alpha else torch.zeros_like(outer)
        return product | summand if beta else product
    product = outer if alpha == 1 else outer * alpha
    return product if beta == 0 else product + (summand if beta == 1 else summand * beta)


def _require_scalar(name: str, scalar: float | int, dtype: torch.dtype) -> None:
    """Raise what the CPU raises for a scalar of another kind than the result."""
    if isinstance(scalar, bool) and dtype != torch.bool:
        raise RuntimeError(f"Boolean {name} only supported for Boolean results.")
    if not (dtype.is_floating_point or dtype.is_complex or isinstance(scalar, int)):
        raise RuntimeError(f"For integral input tensors, argument {name} must not be a floating point number.")


def addr_out(
    self: torch.Tensor,
    vec1: torch.Tensor,
    vec2: torch.Tensor,
    *,
    beta: float | int = 1,
    alpha: float | int = 1,
    out: torch.Tensor,
) -> torch.Tensor:
    """`addr.out`: casts the result to the dtype of `out`."""
    result = addr(self, vec1, vec2, beta=beta, alpha=alpha)
    require_castable(result.dtype, out.dtype)
    require_device(self, {"out": out}, "addr")
    return copy_to_output(out, result)


def are_refused(self: torch.Tensor, vec1: torch.Tensor, vec2: torch.Tensor, **options: object) -> bool:
    """Whether torch's own addr on mps refuses the dtypes, or upstream expects it to fail: complex ones."""
    dtype = self.dtype
    if dtype is vec1.dtype is vec2.dtype:
        return not dtype.is_floating_point
    dtypes = (dtype, vec1.dtype, vec2.dtype)
    return any(dtype.is_complex for dtype in dtypes) or not any(dtype.is_floating_point for dtype in dtypes)
