"""The layout of tensors in memory, as the host code of several families determines it."""

from __future__ import annotations

from collections.abc import Iterable

from torch import Tensor


def in_order_of_memory(value: Tensor, output: Tensor) -> tuple[Tensor, Tensor]:
    """Permute both tensors to the order of the first one's strides, if that makes the first one contiguous.

    So a transposed tensor takes the kernels for dense ones.
    """
    if value.is_contiguous():
        return value, output
    order = sorted(range(value.dim()), key=lambda d: -value.stride()[d])
    permuted = value.permute(order)
    return (permuted, output.permute(order)) if permuted.is_contiguous() else (value, output)


def with_reduced_dimensions(result: Tensor, dimensions: Iterable[int], keepdim: bool) -> Tensor:
    """The result of a reduction with its reduced dimensions kept, with size 1."""
    if keepdim:
        return result
    for dimension in sorted(dimensions):
        result = result.unsqueeze(dimension)
    return result


def wrapped(dimension: int, rank: int) -> int:
    """The dimension as a number that is not negative; a 0-dim tensor counts as 1-dim."""
    return dimension % max(rank, 1)


def wrapped_dimensions(dimensions: Iterable[int] | int | None, rank: int) -> list[int]:
    """The dimensions of an argument `dim`; all of them if it is None or empty."""
    if rank == 0:
        return []
    listed = [] if dimensions is None else [dimensions] if isinstance(dimensions, int) else list(dimensions)
    return sorted(wrapped(d, rank) for d in listed) or list(range(rank))
