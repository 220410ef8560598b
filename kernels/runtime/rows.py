"""Launches kernels that give a threadgroup to each row."""

from __future__ import annotations

MOST_THREADS = 256
SIMD_WIDTH = 32


def row_group(length: int) -> int:
    """Threads for a row: whole SIMD groups, one thread an element, at most 256 (what the kernels have scratch for)."""
    return min(MOST_THREADS, max(1, -(-length // SIMD_WIDTH)) * SIMD_WIDTH)
