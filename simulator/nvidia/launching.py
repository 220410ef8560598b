"""Converts Metal's grid of threads to CUDA's grid of groups.

Metal's groups at the edge of a grid are smaller. If a kernel depends on that, because threads wait for each other or
read the size of their group, every kind of edge is a separate launch: up to eight. Otherwise there is one launch, and
threads outside of the grid return at once. Grids with more groups than a launch may have are split.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass

from .driver import Size

# The largest launch in groups. Metal has no such limit.
_MAX_GROUPS = (2**31 - 1, 65535, 65535)


@dataclass(frozen=True)
class DriverLaunch:
    """A launch: its groups, the threads of each, and their position in the grid.

    `numbers` is `struct nvidia_launch` of include/nvidia/kernel.h.
    """

    groups: Size
    group: Size
    numbers: tuple[int, ...]


def launches(grid: Size, group: Size, cut: bool) -> Iterator[DriverLaunch]:
    """The launches for `grid` threads in groups of `group`; `cut`: groups at the edge are smaller."""
    groups = tuple(-(-threads // size) for threads, size in zip(grid, group, strict=True))
    most = zip(grid, group, _MAX_GROUPS, strict=True)
    parts = [list(_within(_parts(threads, size, cut), limit)) for threads, size, limit in most]
    for x, y, z in itertools.product(*parts):
        first = (x.first, y.first, z.first)
        yield DriverLaunch(
            (x.count, y.count, z.count), (x.threads, y.threads, z.threads), (*grid, *group, *groups, *first)
        )


@dataclass(frozen=True)
class _Part:
    """Groups of one dimension with the same number of threads."""

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


def _within(parts: Iterator[_Part], limit: int) -> Iterator[_Part]:
    """Split parts into at most `limit` groups each."""
    for part in parts:
        for begin in range(0, part.count, limit):
            yield _Part(part.first + begin, min(limit, part.count - begin), part.threads)
