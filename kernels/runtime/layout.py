"""Layouts of tensors for strided kernels: dimensions are merged if all operands allow it; 32- or 64-bit offsets."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

import torch
from torch._prims_common import suggest_memory_format

from . import shader
from .shader import MetalKernel

LARGEST_32_BIT = 2**31 - 1
# Rows of threads beyond this many: a grid has at most 2^32 - 1 threads in one dimension.
_ROW = 2**30

# Dimensions from the innermost one of memory on, by how many a channels_last tensor has.
_CHANNELS_LAST = {4: (torch.channels_last, (1, 3, 2, 0)), 5: (torch.channels_last_3d, (1, 4, 3, 2, 0))}


def broadcast(*shapes: Sequence[int]) -> torch.Size:
    """The shape that all broadcast to, as `torch.broadcast_shapes`, which would load sympy. Raises RuntimeError."""
    first, *others = shapes
    result = torch.Size(first)
    for shape in others:
        if shape != result:
            result = torch._C._infer_size(result, torch.Size(shape))
    return result


def expanded(x: torch.Tensor, shape: tuple[int, ...]) -> torch.Tensor:
    """`x.expand(shape)`, which costs nothing if the tensor has this shape."""
    return x if x.shape == shape else x.expand(shape)


def memory_format_of(x: torch.Tensor) -> torch.memory_format:
    """The memory format of a tensor's strides, as `suggest_memory_format`, which would load sympy at its first call."""
    if type(x) is not torch.Tensor:
        return suggest_memory_format(x)
    shape, strides, least = x.shape, x.stride(), 0
    memory_format, order = _CHANNELS_LAST.get(len(shape), (torch.contiguous_format, ()))
    for dim in order:
        size, stride = shape[dim], strides[dim]
        # With one channel and one pixel both formats have the same strides, which count as contiguous ones.
        if not size or stride < least or (dim == 0 and least == strides[1]) or (dim == 1 and not stride):
            return torch.contiguous_format
        least = stride * size
    return memory_format


@dataclass(frozen=True)
class Layout:
    """The common iteration space of several operands, the innermost dimension first.

    Attributes:
        sizes: the size of each dimension. Dimensions of size 1 are dropped, and neighbouring ones are merged if all
            operands step through them with one stride.
        strides: the strides of each operand in elements.
        elements: the product of the sizes.
    """

    sizes: tuple[int, ...]
    strides: tuple[tuple[int, ...], ...]
    elements: int

    @cached_property
    def is_dense(self) -> bool:
        """Whether every operand is dense in memory, in the same order."""
        return not self.sizes or (len(self.sizes) == 1 and all(row == (1,) for row in self.strides))

    @cached_property
    def fits_32_bits(self) -> bool:
        """Whether element numbers and all offsets fit into 31 bits."""
        if self.elements > LARGEST_32_BIT:
            return False
        return all(
            sum((size - 1) * stride for size, stride in zip(self.sizes, row, strict=True)) <= LARGEST_32_BIT
            for row in self.strides
        )

    @cached_property
    def _answers(self) -> dict[tuple[str, int], Any]:
        """What `in_vectors` and `in_parts` answered, because a program has few layouts, and uses them in every step."""
        return {}

    def in_vectors(self, lanes: int) -> Layout | None:
        """The layout of the same operands in vectors of `lanes` elements; None if a vector would not be contiguous."""
        key, answers = ("vectors", lanes), self._answers
        if key not in answers:
            answers[key] = self._in_vectors(lanes)
        return answers[key]  # type: ignore[no-any-return]

    def _in_vectors(self, lanes: int) -> Layout | None:
        if not self.sizes or self.sizes[0] % lanes or any(row[0] != 1 for row in self.strides):
            return None
        if any(stride % lanes for row in self.strides for stride in row[1:]):
            return None
        strides = tuple((1, *(stride // lanes for stride in row[1:])) for row in self.strides)
        return Layout((self.sizes[0] // lanes, *self.sizes[1:]), strides, self.elements // lanes)

    def in_parts(self, parts: int) -> tuple[Layout, list[int]] | None:
        """The layout of the first of `parts` equal parts, and the distance between parts in each operand.

        The longest divisible dimension is divided, which keeps neighbours together. None if no dimension is divisible.
        """
        key, answers = ("parts", parts), self._answers
        if key not in answers:
            answers[key] = self._in_parts(parts)
        return answers[key]  # type: ignore[no-any-return]

    def _in_parts(self, parts: int) -> tuple[Layout, list[int]] | None:
        divisible = [d for d, size in enumerate(self.sizes) if size % parts == 0]
        if not divisible:
            return None
        d = max(divisible, key=lambda d: self.sizes[d])
        length = self.sizes[d] // parts
        sizes = (*self.sizes[:d], length, *self.sizes[d + 1 :])
        return Layout(sizes, self.strides, self.elements // parts), [length * row[d] for row in self.strides]

    @cached_property
    def packed(self) -> list[int]:
        """The numbers of `struct offsets` of shared/strided.metal."""
        return [self.elements, len(self.sizes), *self.sizes, *(stride for row in self.strides for stride in row)]

    def launch(self, kernel: MetalKernel, *arguments: object, reports: bool = False) -> None:
        """Run a kernel with one thread per element; the layout follows its arguments. `reports`: as below."""
        casts = {len(arguments): "int32"} if self.fits_32_bits else None
        launch_elements(kernel, self.elements, *arguments, self.packed, arg_casts=casts, reports=reports)


def launch_elements(
    kernel: MetalKernel,
    elements: int,
    *arguments: object,
    arg_casts: dict[int, str] | None = None,
    reports: bool = False,
) -> None:
    """Run a kernel with at least one thread per element, in rows if one dimension of the grid is too short.

    The kernel finds its element with `element_of` of shared/strided.metal; the last row may be longer than needed.
    `reports`: the kernel's last buffer is the error buffer.
    """
    threads, size = (elements, None) if elements <= _ROW else ((_ROW, -(-elements // _ROW)), (256, 1))
    if reports and shader.REPORTS_ERRORS:
        kernel(*arguments, threads=threads, group_size=size, arg_casts=arg_casts, error_buf_idx=len(arguments))
    else:
        kernel(*arguments, threads=threads, group_size=size, arg_casts=arg_casts)


def layout_of(operands: Sequence[torch.Tensor]) -> Layout:
    """The layout of operands of one shape; broadcast an operand with `expand` first.

    The order of dimensions follows the first operand, so that adjacent threads access adjacent memory of it.
    """
    return layout_over(operands[0].shape, tuple([operand.stride() for operand in operands]))


def logical_order(x: torch.Tensor) -> list[int]:
    """The layout of one tensor for `struct offsets`; elements are numbered as if it were contiguous."""
    return _logical_order(x.shape, x.stride())


def reduced_orders(x: torch.Tensor, reduced: Collection[int]) -> tuple[list[int], list[int]]:
    """`logical_order` of the first elements of all rows, and of the elements of one row (the dimensions `reduced`).

    The first number of each list is the number of elements.
    """
    return _reduced_orders(x.shape, x.stride(), tuple(reduced))


@lru_cache(maxsize=4096)
def _reduced_orders(
    shape: tuple[int, ...], strides: tuple[int, ...], reduced: tuple[int, ...]
) -> tuple[list[int], list[int]]:
    outside = [d for d in range(len(shape)) if d not in reduced]
    rows, columns = (
        _logical_order(tuple(shape[d] for d in part), tuple(strides[d] for d in part))
        for part in (outside, [d for d in range(len(shape)) if d in reduced])
    )
    return rows, columns


@lru_cache(maxsize=4096)
def _logical_order(shape: tuple[int, ...], strides: tuple[int, ...]) -> list[int]:
    logical, running = [0] * len(shape), 1
    for d in reversed(range(len(shape))):
        logical[d] = running
        running *= max(shape[d], 1)
    merged = layout_over(shape, (tuple(logical), strides))
    return [merged.elements, len(merged.sizes), *merged.sizes, *merged.strides[1]]


@lru_cache(maxsize=4096)
def layout_over(shape: tuple[int, ...], rows: tuple[tuple[int, ...], ...]) -> Layout:
    """The layout of parts of operands: `shape` from the first element of each on, with its strides, a row an operand.

    It is cached because a program has few layouts, and the same ones in every step.
    """
    order = sorted((d for d in range(len(shape)) if shape[d] != 1), key=lambda d: (rows[0][d], -d))
    sizes: list[int] = []
    strides: list[list[int]] = [[] for _ in rows]
    for d in order:
        if sizes and all(kept[-1] * sizes[-1] == row[d] for kept, row in zip(strides, rows, strict=True)):
            sizes[-1] *= shape[d]
            continue
        sizes.append(shape[d])
        for kept, row in zip(strides, rows, strict=True):
            kept.append(row[d])
    return Layout(tuple(sizes), tuple(map(tuple, strides)), math.prod(shape))
