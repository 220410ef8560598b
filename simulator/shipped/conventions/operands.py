"""Helpers for tensors and numbers besides geometry: bits, scalars, identity, grids."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from ..plan import MAX_THREADS_OF_GROUP, Declined

_INTEGERS = {1: torch.int8, 2: torch.int16, 4: torch.int32, 8: torch.int64}
_LARGEST_32_BITS = 2**31 - 1

Grid = tuple[int, int, int]


def as_bits(tensor: Tensor) -> Tensor:
    """The same memory as integers of the same width, for kernels that only move elements.

    Raises:
        Declined: no integer is as wide.
    """
    integer = _INTEGERS.get(tensor.element_size())
    if integer is None:
        raise Declined(f"no kernel for {str(tensor.dtype).removeprefix('torch.')}")
    return tensor if tensor.dtype == integer else tensor.view(integer)


def bit_name(tensor: Tensor) -> str:
    """The width of an element in the names of kernels: "32bit" (`getBitSizeString`).

    Raises:
        Declined: an element is wider than kernels support.
    """
    return f"{as_bits(tensor).element_size() * 8}bit"


def scalar_bytes(value: object, dtype: torch.dtype) -> bytes:
    """A number as one element of a dtype (`getMPSScalar`)."""
    element = torch.tensor([value], dtype=dtype, device="cpu")
    return bytes(element.view(torch.uint8).tolist())


def at_least_one(numbers: Sequence[int]) -> list[int]:
    """Sizes or strides; [1] for a 0-dim tensor, because a buffer cannot be empty."""
    return list(numbers) or [1]


def is_same(tensor: Tensor, other: Tensor) -> bool:
    """Whether two tensors have the same memory, dtype, shape and strides, as `is_same` of the host code checks."""
    return (
        tensor.data_ptr() == other.data_ptr()
        and tensor.dtype == other.dtype
        and tensor.shape == other.shape
        and tensor.stride() == other.stride()
    )


def at_least_1d(tensor: Tensor) -> Tensor:
    """The tensor; a 0-dim tensor as a 1-dim one."""
    return tensor.view(1) if tensor.dim() == 0 else tensor


def fits_32_bits(*tensors: Tensor) -> bool:
    """Whether 32-bit offsets reach every element (`canUse32BitIndexMath`)."""
    return all(
        tensor.numel() <= _LARGEST_32_BITS
        and sum((n - 1) * abs(s) for n, s in zip(tensor.shape, tensor.stride(), strict=True)) <= _LARGEST_32_BITS
        for tensor in tensors
        if tensor.numel()
    )


def in_box(x: int, y: int, z: int) -> tuple[Grid, Grid]:
    """Grid and group of a three-dimensional launch; the group extends along x first, then y, then z."""
    across = min(x, MAX_THREADS_OF_GROUP)
    down = min(y, max(1, MAX_THREADS_OF_GROUP // across))
    deep = min(z, max(1, MAX_THREADS_OF_GROUP // (across * down)))
    return (x, y, z), (across, down, deep)
