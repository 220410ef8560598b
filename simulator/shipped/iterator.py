"""TensorIterator's geometry: sizes and strides after dimensions are ordered and joined.

The rules are those of `aten/src/ATen/TensorIterator.cpp` (`compute_shape`, `compute_strides`, `reorder_dimensions`,
`coalesce_dimensions`), which have not changed in the releases that ship kernels. Kernels take sizes and strides in
this order: innermost dimension first, strides in bytes.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import TypeAlias

from torch import Tensor

Sizes: TypeAlias = tuple[int, ...]
Operand: TypeAlias = tuple[Sizes, Sizes, int]
"""Sizes, strides in elements, bytes of an element."""

_LARGEST_OFFSET = 2**31 - 1
INNER_CONTIGUOUS_MINIMUM = 16
"""The shortest contiguous innermost dimension for an `inner_contiguous` kernel."""


@dataclass(frozen=True, slots=True)
class Geometry:
    """How a kernel iterates over its operands, outputs first.

    Attributes:
        shape: sizes, innermost dimension first, joined as far as all operands allow; empty for one element.
        strides: of each operand in bytes, in the order of `shape`; 0 where the operand is broadcast.
        numel: elements of the result.
        contiguous: whether all operands are dense and in the same order, so that an index is an offset.
        inner_contiguous: whether they are so along the innermost of several dimensions.
    """

    shape: Sizes
    strides: tuple[Sizes, ...]
    numel: int
    contiguous: bool
    inner_contiguous: bool

    @property
    def prefers_inner_contiguous(self) -> bool:
        """Whether the host uses an `inner_contiguous` kernel: the innermost run is long enough."""
        return self.inner_contiguous and self.shape[0] >= INNER_CONTIGUOUS_MINIMUM

    @property
    def outer(self) -> int:
        """The number of innermost runs."""
        return self.numel // self.shape[0]

    @property
    def fits_32_bits(self) -> bool:
        """Whether 32-bit offsets reach every byte; otherwise the host splits the iterator."""
        return all(
            sum((size - 1) * abs(stride) for size, stride in zip(self.shape, strides, strict=True)) <= _LARGEST_OFFSET
            for strides in self.strides
        )


def geometry(*tensors: Tensor) -> Geometry:
    """The geometry of an iterator over these tensors, outputs first, broadcast against each other."""
    return geometry_of(tuple((tuple(t.shape), t.stride(), t.element_size()) for t in tensors))


@functools.lru_cache(maxsize=4096)
def geometry_of(operands: tuple[Operand, ...]) -> Geometry:
    """The geometry of an iterator over operands that are described by their sizes, strides and element sizes."""
    shape = list(broadcast([sizes for sizes, _, _ in operands]))
    strides = [_expanded(operand, shape) for operand in operands]
    order = _by_stride(shape, strides)
    shape = [shape[d] for d in order]
    strides = [[row[d] for d in order] for row in strides]
    _join(shape, strides)
    numel = prod(shape)
    elements = [size for _, _, size in operands]
    first_is_dense = bool(shape) and all(row[0] == size for row, size in zip(strides, elements, strict=True))
    contiguous = numel == 1 or (len(shape) == 1 and first_is_dense)
    return Geometry(
        shape=tuple(shape),
        strides=tuple(map(tuple, strides)),
        numel=numel,
        contiguous=contiguous,
        inner_contiguous=len(shape) >= 2 and not contiguous and first_is_dense,
    )


def broadcast(shapes: Sequence[Sizes]) -> Sizes:
    """The common shape of several shapes.

    Raises:
        ValueError: they do not broadcast.
    """
    dimensions = max(map(len, shapes), default=0)
    common = [1] * dimensions
    for sizes in shapes:
        for at, size in enumerate(sizes, dimensions - len(sizes)):
            if size != 1:
                if common[at] not in (1, size):
                    raise ValueError(f"shapes {shapes} do not broadcast")
                common[at] = size
    return tuple(common)


def _expanded(operand: Operand, shape: list[int]) -> list[int]:
    """The operand's strides in bytes over the common shape: 0 along missing dimensions."""
    sizes, strides, element = operand
    missing = len(shape) - len(sizes)
    own = [
        0 if size == 1 and common != 1 else stride * element
        for size, stride, common in zip(sizes, strides, shape[missing:], strict=True)
    ]
    return [0] * missing + own


def _by_stride(shape: list[int], strides: list[list[int]]) -> list[int]:
    """The dimensions, innermost first: an insertion sort, because the comparison below is not a total order."""
    order = list(reversed(range(len(shape))))
    for end in range(1, len(order)):
        moving = end
        for before in range(end - 1, -1, -1):
            verdict = _compare(order[before], order[moving], shape, strides)
            if verdict > 0:
                order[before], order[moving] = order[moving], order[before]
                moving = before
            elif verdict < 0:
                break
    return order


def _compare(left: int, right: int, shape: list[int], strides: list[list[int]]) -> int:
    """1 to swap two dimensions, -1 to keep their order, 0 if no operand decides."""
    for row in strides:
        if row[left] == 0 or row[right] == 0:
            continue
        if row[left] != row[right]:
            return 1 if row[left] > row[right] else -1
        if shape[left] > shape[right]:
            return 1
    return 0


def _join(shape: list[int], strides: list[list[int]]) -> None:
    """Join adjacent dimensions, in place, if every operand is contiguous across them."""
    if len(shape) <= 1:
        return
    last = 0
    for dimension in range(1, len(shape)):
        if _can_join(last, dimension, shape, strides):
            if shape[last] == 1:
                for row in strides:
                    row[last] = row[dimension]
            shape[last] *= shape[dimension]
        else:
            last += 1
            shape[last] = shape[dimension]
            for row in strides:
                row[last] = row[dimension]
    del shape[last + 1 :]
    for row in strides:
        del row[last + 1 :]


def _can_join(inner: int, outer: int, shape: list[int], strides: list[list[int]]) -> bool:
    if shape[inner] == 1 or shape[outer] == 1:
        return True
    return all(shape[inner] * row[inner] == row[outer] for row in strides)
