"""`sspaddmm`: a product of a sparse and a dense matrix, as a sparse one, composed of torch's operators."""

from __future__ import annotations

import torch

from ..runtime.operands import not_implemented, require_device

_HALVES = (torch.float16, torch.bfloat16)


def sspaddmm_out(
    self: torch.Tensor,
    mat1: torch.Tensor,
    mat2: torch.Tensor,
    *,
    beta: complex = 1,
    alpha: complex = 1,
    out: torch.Tensor,
) -> torch.Tensor:
    """`sspaddmm.out`: beta self + alpha mat1 mat2, not coalesced: the product follows `self`."""
    _check(self, mat1, mat2, out)
    require_device(self, {"mat1": mat1, "mat2": mat2, "out": out}, "sspaddmm")
    # As on the CPU: without values, as in `smm`, a beta such as 0.0 is not refused beside integers.
    values = self._values().clone().mul_(beta) if self._nnz() else self._values()
    if values.dtype != out.dtype:
        raise RuntimeError(f"dtype of values ({values.dtype}) must match dtype of sparse tensor ({out.dtype})")
    if mat1.dtype in _HALVES:
        raise not_implemented("sspmm", mat1.dtype)
    whole = not (mat1.is_floating_point() or mat1.is_complex())
    merged, columns = mat1.coalesce(), mat2.shape[1]
    (rows, inner), factors = merged._indices(), merged._values()
    filled, places = torch.unique_consecutive(rows, return_inverse=True)
    product = torch.zeros(len(filled), columns, dtype=mat1.dtype, device=mat1.device)
    product.index_add_(0, places, (factors * (int(alpha.real) if whole else alpha)).unsqueeze(1) * mat2[inner])
    across = torch.arange(columns, device=mat1.device).repeat(len(filled))
    places = torch.stack([filled.repeat_interleave(columns), across])
    indices = torch.cat([self._indices(), places], 1)
    sum_of_both = torch.sparse_coo_tensor(
        indices, torch.cat([values, product.reshape(-1)]), self.shape, check_invariants=False
    )
    out.sparse_resize_and_clear_(self.shape, 2, 0)
    return out.copy_(sum_of_both)


def _check(self: torch.Tensor, mat1: torch.Tensor, mat2: torch.Tensor, out: torch.Tensor) -> None:
    """Raise what the CPU raises. As there, a `self` that is written, that of `smm`, gets the shape of the result."""
    layouts = (("self", self, torch.sparse_coo), ("mat1", mat1, torch.sparse_coo), ("mat2", mat2, torch.strided))
    for name, matrix, layout in layouts:
        if matrix.layout != layout:
            raise RuntimeError(f"sspaddmm: expected '{name}' to have {layout} layout, got {matrix.layout}")
    for number, dimensions in ((2, mat1.sparse_dim()), (3, mat2.dim())):
        if dimensions != 2:
            raise RuntimeError(f"sspaddmm: Argument #{number}: matrices expected, got {dimensions}D tensor")
    if mat1.dense_dim() or self.dense_dim():
        raise RuntimeError(f"sspaddmm: Argument #2: scalar values expected, got {mat1.dense_dim()}D values")
    if mat1.shape[1] != mat2.shape[0]:
        raise RuntimeError(f"sspaddmm: Argument #3: Expected dim 0 size {mat1.shape[1]}, got {mat2.shape[0]}")
    shape = (mat1.shape[0], mat2.shape[1])
    if self is out:
        self.sparse_resize_(shape, 2, 0)
    for dim, size in enumerate(shape):
        if self.shape[dim] != size:
            raise RuntimeError(f"sspaddmm: Argument #1: Expected dim {dim} size {size}, got {self.shape[dim]}")
    if mat1.dtype != mat2.dtype:
        raise RuntimeError(f"expected scalar type {mat1.dtype} but found {mat2.dtype}")
