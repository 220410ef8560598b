"""Launches kernels with a threadgroup for each row, and keeps launches short."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import torch

from ...metal_limits import SIMD_WIDTH
from . import shader
from .convergence import warn_of_the_cpu
from .shader import MetalKernel

MOST_THREADS = 256
# This many rows fill a GPU with groups of a few threads.
_MANY_ROWS = 1024
_SHORT_ROW = 4096
# Multiplications and additions of one launch. macOS ends a launch after some seconds, and torch does not see it. At an
# estimated 3e11 a second, a tenth of what an M1 is said to do, these take less than half a second.
MOST_PRODUCTS = 2**37
# Steps of one thread after another, each with a wait for memory or for other threads: about a microsecond, an estimate.
MOST_STEPS = 2**18
# Additions to one place in memory, which wait for each other.
MOST_CONTENDED_ADDITIONS = 2**23


def row_group(length: int) -> int:
    """The number of threads for a row: whole SIMD groups, one thread per element, at most 256 (kernels' scratch)."""
    threads = (-(-length // SIMD_WIDTH) or 1) * SIMD_WIDTH
    return threads if threads < MOST_THREADS else MOST_THREADS  # half the time of `min`


def group_of_many_rows(rows: int, length: int, simd_groups: int = 2) -> int:
    """As `row_group`, but only `simd_groups` SIMD groups if there are many short rows.

    More rows are loaded at a time, and fewer threads wait for each other: two to four times as fast on an H200.
    """
    if rows >= _MANY_ROWS and length <= _SHORT_ROW:
        return min(row_group(length), simd_groups * SIMD_WIDTH)
    return row_group(length)


def launch_rows(
    kernel: MetalKernel, rows: int, group: int, *arguments: object, int32: bool = False, reports: bool = False
) -> None:
    """Run a kernel with a threadgroup of `group` threads for each of up to 2^32 - 1 rows.

    The row is the group's second coordinate: threads counted in one dimension would not fit into 32 bits.
    `int32`: the kernel reads integers that are passed by value as 32 bits.
    `reports`: the kernel's last buffer is the error buffer.
    """
    threads, size, casts = (group, rows), (group, 1), int32_casts(arguments) if int32 else None
    if reports and shader.REPORTS_ERRORS:
        kernel(*arguments, threads=threads, group_size=size, arg_casts=casts, error_buf_idx=len(arguments))
    else:
        kernel(*arguments, threads=threads, group_size=size, arg_casts=casts)


def short_launches(rows: int, products_of_row: int, tile: int = 1, most: int | None = None) -> Iterable[slice]:
    """Divide all rows among launches, in whole tiles; no launch has more than `most` products unless one tile has.

    `most`: `MOST_PRODUCTS` by default. After each launch but the last, wait for it, because Metal could otherwise end
    them together.
    """
    if 0 < rows * products_of_row <= (most or MOST_PRODUCTS):
        return (slice(0, rows),)
    return _parts(rows, max(tile, (most or MOST_PRODUCTS) // max(products_of_row, 1) // tile * tile))


def _parts(rows: int, count: int) -> Iterator[slice]:
    for first in range(0, rows, count):
        if first:
            torch.mps.synchronize()
        yield slice(first, min(first + count, rows))


def rows_in(part: slice, *tensors: torch.Tensor) -> tuple[torch.Tensor, ...]:
    """These rows of each tensor; if one launch takes all rows, the tensors themselves, which costs nothing."""
    if part.stop - part.start == tensors[0].shape[0]:
        return tensors
    return tuple(x[part] for x in tensors)


def is_too_long(name: str, steps: int, size: str, *numbers: int) -> bool:
    """Whether one launch would take more than `MOST_STEPS`; if so, warn that the CPU computes.

    `size`: what is too long. With `numbers` it is a format of them, "{} rows", which costs nothing unless it is used.
    """
    if steps <= MOST_STEPS:
        return False
    warn_of_the_cpu(name, f"one launch would take too long for {size.format(*numbers) if numbers else size}")
    return True


def fill_on_cpu(
    outputs: Sequence[torch.Tensor],
    function: Callable[..., Any],
    *arguments: Any,
    dtype: torch.dtype = torch.float64,
    **keywords: Any,
) -> None:
    """Call `function` on the CPU and copy its results to `outputs`, which have as many elements.

    `dtype`: the dtype of its floating arguments; summing millions of float32 in a row, the CPU would lose digits.
    """
    named = {name: _on_cpu(argument, dtype) for name, argument in keywords.items()}
    results = function(*(_on_cpu(argument, dtype) for argument in arguments), **named)
    for output, result in zip(outputs, (results,) if isinstance(results, torch.Tensor) else results, strict=True):
        output.copy_(result.view(output.shape).to(output.dtype))


def _on_cpu(argument: Any, dtype: torch.dtype) -> Any:
    if not isinstance(argument, torch.Tensor):
        return argument
    here = argument.cpu()  # first: no conversion to double runs on mps
    return here.to(dtype) if here.is_floating_point() else here


def int32_casts(arguments: Sequence[object]) -> dict[int, str]:
    """The `arg_casts` that pass integers and lists of integers as 32 bits."""
    casts = {}
    for at, argument in enumerate(arguments):
        if isinstance(argument, int) or (isinstance(argument, list) and all(isinstance(x, int) for x in argument)):
            casts[at] = "int32"
    return casts
