"""Rows: the values along some dimensions of a tensor, contiguous for kernels that work by rows."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch

from .operands import wrap_dim

Dims = int | Sequence[int] | None


def rows_of(tensor: torch.Tensor, dims: Dims) -> torch.Tensor:
    """A contiguous matrix with a row for each position in the other dimensions. No dims means all of them."""
    others, inside = _split(tensor.dim(), dims)
    shape = [math.prod(tensor.shape[dim] for dim in part) for part in (others, inside)]
    return tensor.permute(*others, *inside).reshape(shape).contiguous() if tensor.dim() else tensor.reshape(1, 1)


def from_rows(rows: torch.Tensor, shape: Sequence[int], dims: Dims) -> torch.Tensor:
    """The inverse of `rows_of`: a tensor of this shape."""
    others, inside = _split(len(shape), dims)
    order = [*others, *inside]
    inverse = [order.index(dim) for dim in range(len(shape))]
    return rows.reshape([shape[dim] for dim in order]).permute(inverse)


def reduced_shape(tensor: torch.Tensor, dims: Dims, keepdim: bool = False) -> list[int]:
    """The shape of a result with one value for each row."""
    others, _ = _split(tensor.dim(), dims)
    if keepdim:
        return [size if dim in others else 1 for dim, size in enumerate(tensor.shape)]
    return [tensor.shape[dim] for dim in others]


def matrix_count(tensor: torch.Tensor) -> int:
    """How many matrices a batch of them has; generated hosts call it."""
    return math.prod(tensor.shape[:-2])


def sizes_of(values: torch.Tensor | Sequence[int]) -> list[int]:
    """The number of sizes, then the sizes: a list as a shader reads it, never empty; generated hosts call it."""
    sizes = values.shape if isinstance(values, torch.Tensor) else values
    return [len(sizes), *(int(size) for size in sizes)]


def _split(count: int, dims: Dims) -> tuple[list[int], list[int]]:
    """The dimensions outside of a row and those inside, in order."""
    named = [dims] if isinstance(dims, int) else list(dims or range(count))
    wrapped = {wrap_dim(dim, max(count, 1)) for dim in named}
    inside = sorted(wrapped) if count else []
    return [dim for dim in range(count) if dim not in inside], inside
