"""Launches kernels that give a threadgroup to each row."""

from __future__ import annotations

from ...metal_limits import SIMD_WIDTH
from .shader import MetalKernel, reporting

MOST_THREADS = 256


def row_group(length: int) -> int:
    """Threads for a row: whole SIMD groups, one thread an element, at most 256 (what the kernels have scratch for)."""
    return min(MOST_THREADS, max(1, -(-length // SIMD_WIDTH)) * SIMD_WIDTH)


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
