"""How tensors lie in memory, as the host code of several families asks it."""

from __future__ import annotations

from collections.abc import Iterable

from torch import Tensor


def in_order_of_memory(value: Tensor, output: Tensor) -> tuple[Tensor, Tensor]:
    """Both with their dimensions in the order of the first one's strides, where that makes the first contiguous.

    So a transposed tensor takes the kernels for dense ones.
    """
    if value.is_contiguous():
        return value, output
    order = sorted(range(value.dim()), key=lambda d: -value.stride()[d])
    permuted = value.permute(order)
    return (permuted, output.permute(order)) if permuted.is_contiguous() else (value, output)


def with_reduced_dimensions(result: Tensor, dimensions: Iterable[int], keepdim: bool) -> Tensor:
    """The result of a reduction with the reduced dimensions in place, with size 1."""
    if keepdim:
        return result
    for dimension in sorted(dimensions):
        result = result.unsqueeze(dimension)
    return result


def wrapped(dimension: int, rank: int) -> int:
    """A dimension counted from the front; a tensor without any counts as one with one."""
    return dimension % max(rank, 1)


def wrapped_dimensions(dimensions: Iterable[int] | int | None, rank: int) -> list[int]:
    """The dimensions that an argument `dim` names: all where it names none."""
    if rank == 0:
        return []
    listed = [] if dimensions is None else [dimensions] if isinstance(dimensions, int) else list(dimensions)
    return sorted(wrapped(d, rank) for d in listed) or list(range(rank))
