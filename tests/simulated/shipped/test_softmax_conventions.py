"""Softmax, log_softmax and gradients of distances by the shipped kernels."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from support.shipped_kernels import LAYOUTS, Shipped, assert_near, normal

pytestmark = pytest.mark.network

FUNCTIONS: list[Callable[[Tensor, int], Tensor]] = [torch.softmax, torch.log_softmax]


@pytest.mark.parametrize("function", FUNCTIONS)
def test_every_layout_along_every_dimension(shipped: Shipped, function: Callable[[Tensor, int], Tensor]) -> None:
    if shipped.release == "2.13.0":
        reasons = shipped.reasons(lambda x: function(x, 0), normal(torch.float32)((3, 4)))
        assert reasons
        assert all(reason.startswith("no kernel") for reason in reasons)
        return
    for layout in sorted(LAYOUTS.keys() - {"empty", "transposed", "permuted"}):
        x = LAYOUTS[layout](normal(torch.float32))
        for dim in range(max(x.dim(), 1)):
            assert_near(shipped.run(function, x, dim), function(x, dim))


@pytest.mark.parametrize("sizes", [(2, 9000), (3, 1500), (130, 1500), (3000, 40)], ids=str)
@pytest.mark.parametrize("function", FUNCTIONS)
def test_long_rows(shipped: Shipped, function: Callable[[Tensor, int], Tensor], sizes: tuple[int, int]) -> None:
    if shipped.release == "2.13.0":
        return
    x = normal(torch.float32)(sizes)
    for dim in (0, 1):
        assert_near(shipped.run(function, x, dim), function(x, dim))


@pytest.mark.parametrize("order", [1.0, 1.5, float("inf")])
def test_gradients_of_distances(shipped: Shipped, order: float) -> None:
    x1, x2, gradient = (normal(torch.float32, seed)(s) for seed, s in enumerate(((2, 4, 70), (2, 6, 70), (2, 4, 6))))
    given = (gradient, x1, x2, order, torch.cdist(x1, x2, order))
    expected = torch.ops.aten._cdist_backward(*given)
    assert_near(shipped.run(torch.ops.aten._cdist_backward, *given), expected, scale=10)
