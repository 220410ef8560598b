"""Chooses the memory of a call that runs on guarded copies; overlapping buffers share a copy."""

from __future__ import annotations

from collections.abc import Container, Mapping

from .binding import Buffer

GUARDED_BYTES = 256 * 1024
"""Calls that bind at most this run on guarded copies in `fast` mode: an access out of bounds is an error."""

Guarded = tuple[int, int, int, bool]  # address, bytes, first argument, writable


def merged_regions(buffers: Mapping[int, Buffer], written: Container[int]) -> list[Guarded]:
    """Memory to guard; overlapping buffers share a region, so that writes through one are visible in the other."""
    ranges = sorted((b.base, b.base + b.size, i) for i, b in buffers.items())
    merged: list[Guarded] = []
    for begin, end, index in ranges:
        writable = index in written
        if merged and begin < merged[-1][0] + merged[-1][1]:
            start, size, first, was_writable = merged[-1]
            merged[-1] = (start, max(start + size, end) - start, min(first, index), writable or was_writable)
        else:
            merged.append((begin, end - begin, index, writable))
    return merged
