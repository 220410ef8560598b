"""Launches kernels that give a threadgroup to each row."""

from __future__ import annotations

from ...metal_limits import SIMD_WIDTH
from .shader import MetalKernel, reporting

MOST_THREADS = 256
# So many rows fill a GPU with groups of a few threads.
_MANY_ROWS = 1024
_SHORT_ROW = 4096


def row_group(length: int) -> int:
    """Threads for a row: whole SIMD groups, one thread an element, at most 256 (what the kernels have scratch for)."""
    return min(MOST_THREADS, max(1, -(-length // SIMD_WIDTH)) * SIMD_WIDTH)


def group_of_many_rows(rows: int, length: int, simd_groups: int = 2) -> int:
    """As `row_group`, with only so many SIMD groups for each of many short rows.

    More rows are loaded at a time then, and fewer threads wait for each other: two to four times as fast on an H200.
    """
    if rows >= _MANY_ROWS and length <= _SHORT_ROW:
        return min(row_group(length), simd_groups * SIMD_WIDTH)
    return row_group(length)


def launch_rows(
    kernel: MetalKernel,
    rows: int,
    group: int,
    *arguments: object,
    arg_casts: dict[int, str] | None = None,
    reports: bool = False,
) -> None:
    """Run a kernel with a group of so many threads for each of up to 2^32 - 1 rows.

    The row is the group's second coordinate: threads counted in one dimension would not fit into 32 bits.
    `reports`: the kernel's last buffer is that for errors.
    """
    errors = reporting(len(arguments)) if reports else {}
    kernel(*arguments, threads=(group, rows), group_size=(group, 1), arg_casts=arg_casts, **errors)
