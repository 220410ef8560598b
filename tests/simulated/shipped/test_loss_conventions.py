"""Negative log likelihood and the gated linear unit by the shipped kernels of each release; 2.13.0 has none."""

from __future__ import annotations

import pytest
import torch

from support.shipped_kernels import Shipped, assert_near, normal, on_both, overload_of
from support.shipped_layouts import layouts

pytestmark = pytest.mark.network

SHAPES = [(5,), (6, 5), (2, 5, 3, 4)]


def skip_before_kernels(shipped: Shipped) -> None:
    if shipped.release == "2.13.0":
        pytest.skip("MPSGraph computes it in this release")


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("reduction", [0, 1, 2])
@pytest.mark.parametrize("weighted", [False, True])
def test_likelihood(shipped: Shipped, shape: tuple[int, ...], reduction: int, weighted: bool) -> None:
    skip_before_kernels(shipped)
    if len(shape) == 1 and reduction == 0:
        return
    classes = 0 if len(shape) == 1 else 1
    generator = torch.Generator().manual_seed(0)
    x = normal(torch.float32)(shape).log_softmax(classes)
    target = torch.randint(0, 5, shape[:classes] + shape[classes + 1 :], generator=generator)
    weight = torch.rand(5, generator=generator) if weighted else None
    name = "nll_loss2d" if len(shape) == 4 else "nll_loss"
    pair = on_both(shipped, f"{name}_forward", x, target, weight, reduction, 2)
    for actual, expected in zip(*pair, strict=True):
        assert_near(actual, expected)
    gradient = torch.rand(pair[1][0].shape, generator=generator)
    backward = on_both(shipped, f"{name}_backward", gradient, x, target, weight, reduction, 2, pair[1][1])
    assert_near(*backward)


def test_2_13_leaves_them_to_the_graph(shipped: Shipped) -> None:
    expected = {"MPSGraph"} if shipped.release == "2.13.0" else set()
    assert shipped.reasons(overload_of("glu"), torch.rand(2, 4)) == expected
    nll = overload_of("nll_loss_forward")
    assert shipped.reasons(nll, torch.rand(2, 4), torch.zeros(2, dtype=torch.int64), None, 1, -100) == expected


@pytest.mark.parametrize("dimension", [0, 1, -1])
def test_gated_linear_units(shipped: Shipped, dimension: int) -> None:
    skip_before_kernels(shipped)
    for x in layouts(normal(torch.float32), 2, 4, 6):
        actual, expected = on_both(shipped, "glu", x, dimension)
        assert_near(actual, expected)
        for gradient in layouts(normal(torch.float32, 1), *expected.shape):
            assert_near(*on_both(shipped, "glu_backward", gradient, x, dimension))
