"""Sampling a grid by the shipped kernels of each release."""

from __future__ import annotations

import pytest
import torch

from support.shipped_kernels import Shipped, assert_near, normal, on_both
from support.shipped_layouts import layouts

pytestmark = pytest.mark.network

MODES = [(mode, padding, (mode + padding) % 2 == 0) for mode in range(3) for padding in range(3)]
SHAPES = {2: ((2, 3, 5, 6), (2, 4, 7, 2)), 3: ((2, 3, 4, 5, 6), (2, 3, 4, 7, 3))}


@pytest.mark.parametrize(("mode", "padding", "corners"), MODES)
@pytest.mark.parametrize("dimensions", [2, 3])
def test_samples(shipped: Shipped, dimensions: int, mode: int, padding: int, corners: bool) -> None:
    if dimensions == 3 and mode == 2:
        return
    image, grid = SHAPES[dimensions]
    pairs = zip(layouts(normal(torch.float32), *image), layouts(normal(torch.float32, 1, 0.9), *grid), strict=False)
    for x, points in pairs:
        actual, expected = on_both(shipped, f"grid_sampler_{dimensions}d", x, points, mode, padding, corners)
        assert_near(actual, expected, 2)


@pytest.mark.parametrize(("mode", "padding", "corners"), MODES)
@pytest.mark.parametrize("dimensions", [2, 3])
def test_gradients(shipped: Shipped, dimensions: int, mode: int, padding: int, corners: bool) -> None:
    if dimensions == 3 and mode == 2:
        return
    image, grid = SHAPES[dimensions]
    x, points = normal(torch.float32)(image), normal(torch.float32, 1, 0.9)(grid)
    for gradient in layouts(normal(torch.float32, 2), 2, 3, *grid[1:-1]):
        arguments = gradient, x, points, mode, padding, corners
        name = f"grid_sampler_{dimensions}d_backward"
        pair = on_both(shipped, name, *arguments, [True, True])
        for actual, expected in zip(*pair, strict=True):
            assert_near(actual, expected, 10)
    if mode != 1:
        actual, expected = on_both(shipped, name, *arguments, [False, True])
        assert_near(actual[1], expected[1], 10)
