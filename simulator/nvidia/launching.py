"""Metal's grid of threads as CUDA's grid of groups.

Metal cuts the groups at the edge of a grid. Where that shows, because threads wait for each other or ask for the size
of their group, every kind of edge becomes a launch of its own: up to eight. Else one launch does, whose threads outside
of the grid return at once.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass

from .driver import Size


@dataclass(frozen=True)
class Launch:
    """One launch of the driver's: its groups, the threads of each, and which groups of the grid they are.

    `numbers` is `struct nvidia_launch` of include/nvidia/kernel.h.
    """

    groups: Size
    group: Size
    numbers: tuple[int, ...]


def launches(grid: Size, group: Size, cut: bool) -> Iterator[Launch]:
    """The launches for `grid` threads in groups of `group`; `cut`: groups at the edge have only the threads there."""
    groups = tuple(-(-threads // size) for threads, size in zip(grid, group, strict=True))
    parts = [list(_parts(threads, size, cut)) for threads, size in zip(grid, group, strict=True)]
    for x, y, z in itertools.product(*parts):
        first = (x.first, y.first, z.first)
        yield Launch((x.count, y.count, z.count), (x.threads, y.threads, z.threads), (*grid, *group, *groups, *first))


@dataclass(frozen=True)
class _Part:
    """Groups of one dimension that have the same number of threads."""

    first: int
    count: int
    threads: int


def _parts(threads: int, size: int, cut: bool) -> Iterator[_Part]:
    whole, rest = divmod(threads, size)
    if not cut:
        yield _Part(0, whole + bool(rest), size)
        return
    if whole:
        yield _Part(0, whole, size)
    if rest:
        yield _Part(whole, 1, rest)
