"""Metal's grid as launches of the driver's: every thread runs once, where Metal says."""

from __future__ import annotations

from collections import Counter
from itertools import product

import pytest

from mpsmith.simulator.nvidia.launching import launches


class TestGrids:
    @pytest.mark.parametrize("cut", [True, False])
    @pytest.mark.parametrize(
        ("grid", "group"),
        [((1000, 1, 1), (256, 1, 1)), ((7, 5, 3), (4, 2, 2)), ((3, 1, 1), (8, 1, 1)), ((8, 8, 1), (4, 4, 1))],
    )
    def test_every_thread_of_the_grid_runs_once(
        self, grid: tuple[int, int, int], group: tuple[int, int, int], cut: bool
    ) -> None:
        threads: Counter[tuple[int, ...]] = Counter()
        for launch in launches(grid, group, cut):
            assert launch.numbers[:6] == (*grid, *group)
            first = launch.numbers[9:]
            for at in product(*map(range, launch.groups)):
                for inside in product(*map(range, launch.group)):
                    position = tuple((f + a) * g + i for f, a, g, i in zip(first, at, group, inside, strict=True))
                    if all(p < n for p, n in zip(position, grid, strict=True)):
                        threads[position] += 1
                    else:
                        assert not cut, "a cut group has no thread outside of the grid"
        assert set(threads.values()) == {1}
        assert len(threads) == grid[0] * grid[1] * grid[2]

    def test_groups_at_the_edge_have_the_threads_that_are_left(self) -> None:
        found = list(launches((10, 1, 1), (4, 1, 1), cut=True))
        assert [(each.groups[0], each.group[0]) for each in found] == [(2, 4), (1, 2)]

    def test_one_launch_does_where_the_size_of_a_group_does_not_show(self) -> None:
        assert len(list(launches((10, 7, 1), (4, 4, 1), cut=False))) == 1

    def test_more_groups_than_a_launch_may_have_are_several_launches(self) -> None:
        found = list(launches((256, 200_000, 1), (256, 1, 1), cut=True))
        assert [(each.groups[1], each.numbers[10]) for each in found] == [
            (65535, 0),
            (65535, 65535),
            (65535, 131070),
            (3395, 196605),
        ]
