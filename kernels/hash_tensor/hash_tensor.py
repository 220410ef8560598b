"""The exclusive or of the elements of a tensor as 64-bit words."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import torch

from ..runtime.layout import reduced_orders
from ..runtime.outputs import check_outputs, contiguous_output, finish, is_ready
from ..runtime.rows import group_of_many_rows
from ..runtime.shader import METAL_TYPES, Shader

_shader = Shader(__file__)
_SHARE = 4096  # elements that one group combines
_MOST_GROUPS = 1024
_VECTOR_BYTES = 16


def hash_tensor_out(
    self: torch.Tensor, dim: Sequence[int] = [], *, keepdim: bool = False, mode: int = 0, out: torch.Tensor
) -> torch.Tensor:
    """`hash_tensor.out`: hashes floating numbers as float64, so that equal values of two dtypes agree."""
    if mode != 0:
        raise RuntimeError(f"Unknown hash_tensor mode: {mode}")
    if out.dtype != torch.uint64:
        raise RuntimeError(f"Expected result to be of dtype uint64, but got {out.dtype}")
    reduced, shape = _reduced(self, dim, keepdim)
    if len(reduced) < len(dim) or not is_ready(out, shape, torch.uint64):
        arguments, options = [self, list(dim)], {"keepdim": keepdim, "mode": mode}
        check_outputs(torch.ops.aten.hash_tensor.out, arguments, {"out": out}, [torch.uint64], **options)
    if self.dtype not in METAL_TYPES or self.dtype.is_complex:
        raise NotImplementedError(f"hash_tensor is not implemented for {self.dtype} on mps")
    if out.numel() == 0:
        return out
    orders = reduced_orders(self, reduced)
    result = contiguous_output(out)
    rows, columns = (order[0] for order in orders)
    groups = min(_MOST_GROUPS, -(-columns // _SHARE))
    if groups == 1:
        _hash(result, self, orders, groups)
    else:
        partial = torch.empty((rows, groups), dtype=torch.int64, device=self.device)
        _hash(partial, self, orders, groups)
        _hash(result, partial, reduced_orders(partial, {1}), 1)
    return finish(out, result)


def _hash(out: torch.Tensor, x: torch.Tensor, orders: tuple[list[int], list[int]], groups: int) -> None:
    rows, columns = (order[0] for order in orders)
    group = group_of_many_rows(rows, columns)
    kernel = _shader.kernel(f"hash_rows_{METAL_TYPES[x.dtype]}", x.device)
    past = x.storage_offset() % (_VECTOR_BYTES // x.element_size())
    kernel(out, x, *orders, past, threads=(group * groups, rows), group_size=(group, 1))


def fake_hash_tensor(
    self: torch.Tensor, dim: Sequence[int] = (), *, keepdim: bool = False, mode: int = 0
) -> torch.Tensor:
    """The shape of the result of `hash_tensor`, for fake tensors."""
    return self.new_empty(_reduced(self, dim, keepdim)[1], dtype=torch.uint64)


def _reduced(x: torch.Tensor, dim: Sequence[int], keepdim: bool) -> tuple[Collection[int], list[int]]:
    """Dimensions that are reduced, of those in range, and the shape of the result."""
    rank = x.dim()
    reduced = {d % rank for d in dim if -rank <= d < rank} if dim else range(rank)
    return reduced, [1 if d in reduced else size for d, size in enumerate(x.shape) if keepdim or d not in reduced]


KERNELS = (("aten::hash_tensor.out", hash_tensor_out),)
FAKES = (("aten::hash_tensor", fake_hash_tensor),)
