"""Pooling by the shipped kernels of each release: windows, layouts, indices, gradients."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from support.shipped_kernels import Shipped, assert_near, normal, on_both, overload_of
from support.shipped_layouts import layouts

pytestmark = pytest.mark.network

# Kernel, stride, padding, dilation, ceil_mode.
WINDOWS: dict[int, list[tuple[list[int], list[int], list[int], list[int], bool]]] = {
    2: [([3, 2], [2, 3], [1, 0], [1, 2], False), ([3], [], [1], [1], True), ([2, 3], [1, 2], [0, 1], [2, 1], True)],
    3: [([3, 2, 2], [2, 1, 3], [1, 0, 1], [1, 2, 1], False), ([2], [], [1], [1], True)],
}
PLANES = {2: (2, 3, 9, 8), 3: (2, 3, 6, 7, 9)}


def assert_both_near(pair: tuple[Any, Any]) -> None:
    for actual, expected in zip(*pair, strict=True):
        assert_near(actual, expected)


@pytest.mark.parametrize("dimensions", [2, 3])
def test_maxima_and_their_places(shipped: Shipped, dimensions: int) -> None:
    name = f"max_pool{dimensions}d_with_indices"
    for x in layouts(normal(torch.float32), *PLANES[dimensions]):
        for windows in WINDOWS[dimensions]:
            assert_both_near(on_both(shipped, name, x, *windows))
    assert_both_near(on_both(shipped, name, normal(torch.float32)(PLANES[dimensions][1:]), *WINDOWS[dimensions][0]))


def test_maxima_alone(shipped: Shipped) -> None:
    x = normal(torch.float16)((3, 9, 8))
    assert_near(shipped.run(torch.max_pool2d, x, 3, 2, kernels=["max_pool_half"]), torch.max_pool2d(x, 3, 2))


def test_windows_that_slide_by_one_are_the_graphs(shipped: Shipped) -> None:
    x = torch.rand(1, 2, 6, 6)
    assert shipped.reasons(overload_of("max_pool2d_with_indices"), x, [3, 2], [1, 1]) == {"MPSGraph"}
    assert shipped.reasons(overload_of("avg_pool2d"), x, [3, 2], [2, 2]) == {"MPSGraph"}


def test_gradients_of_maxima(shipped: Shipped) -> None:
    for windows in WINDOWS[3]:
        x = normal(torch.float32)(PLANES[3])
        pooled, indices = overload_of("max_pool3d_with_indices")(x, *windows)
        for gradient in layouts(normal(torch.float32, 1), *pooled.shape):
            name = "max_pool3d_with_indices_backward"
            actual, expected = on_both(shipped, name, gradient, x, *windows, indices)
            assert_near(actual, expected)


@pytest.mark.parametrize("count_padding", [False, True])
@pytest.mark.parametrize("divisor", [None, 3])
def test_averages_and_their_gradients(shipped: Shipped, count_padding: bool, divisor: int | None) -> None:
    for kernel, stride, padding, _, ceil_mode in WINDOWS[3]:
        windows = kernel, stride, padding, ceil_mode, count_padding, divisor
        for x in layouts(normal(torch.float32), *PLANES[3]):
            actual, expected = on_both(shipped, "avg_pool3d", x, *windows)
            assert_near(actual, expected)
        gradient = normal(torch.float32, 1)(tuple(expected.shape))
        actual, expected = on_both(shipped, "avg_pool3d_backward", gradient, x, *windows)
        assert_near(actual, expected)
    x = normal(torch.float32)(PLANES[2])
    actual, expected = on_both(shipped, "avg_pool2d", x, [3, 2], [2, 3], [1, 0], True, count_padding, divisor)
    assert_near(actual, expected)


def test_adaptive_maxima(shipped: Shipped) -> None:
    for x in layouts(normal(torch.float32), 2, 3, 8, 9):
        assert_both_near(on_both(shipped, "adaptive_max_pool2d", x, [4, 3]))


def test_adaptive_maxima_of_sizes_that_do_not_divide(shipped: Shipped) -> None:
    """Up to 2.13.0 the host takes windows of one size, which are not those of the CPU."""
    x = torch.arange(10.0).reshape(1, 1, 1, 10).flip(-1)
    actual = shipped.run(overload_of("adaptive_max_pool2d"), x, [1, 4], kernels=["max_pool_float"])[0]
    wrong, right = [9.0, 7.0, 5.0, 3.0], [9.0, 7.0, 4.0, 2.0]
    assert actual.flatten().tolist() == (wrong if shipped.release == "2.13.0" else right)


def test_gradients_of_adaptive_maxima(shipped: Shipped) -> None:
    x = normal(torch.float32)((2, 3, 10, 9))
    pooled, indices = overload_of("adaptive_max_pool2d")(x, [4, 3])
    gradient = normal(torch.float32, 1)(tuple(pooled.shape))
    if shipped.release == "2.13.0":
        reasons = shipped.reasons(overload_of("adaptive_max_pool2d_backward"), gradient, x, indices)
        assert reasons == {"MPSGraph"}
        return
    actual, expected = on_both(shipped, "adaptive_max_pool2d_backward", gradient, x, indices)
    assert_near(actual, expected)


@pytest.mark.parametrize("dimensions", [2, 3])
def test_unpooling(shipped: Shipped, dimensions: int) -> None:
    size = [6, 7, 8][:dimensions]
    places = torch.stack([torch.randperm(6 * 7 * (8 if dimensions == 3 else 1))[:24] for _ in range(6)])
    shape = (2, 3, 4, 6) if dimensions == 2 else (2, 3, 2, 3, 4)
    rest = [] if dimensions == 2 else [[2, 2, 2], [0, 0, 0]]
    for x in layouts(normal(torch.float32), *shape):
        actual, expected = on_both(shipped, f"max_unpool{dimensions}d", x, places.reshape(shape), size, *rest)
        assert_near(actual, expected)
