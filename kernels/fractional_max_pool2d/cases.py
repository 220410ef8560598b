"""The calls that verify and time the family."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import torch

from ..verification.calls import KernelCall, RefusedCall
from ..verification.inputs import values
from ..verification.workload import Workload

_aten = torch.ops.aten


def _images(dtype: torch.dtype) -> Iterator[tuple[Any, ...]]:
    for window, size in (((2, 2), (4, 5)), ((3, 2), (5, 7)), ((4, 4), (1, 1))):
        samples = torch.rand(2, 3, 2, generator=torch.Generator().manual_seed(5)).to(dtype)
        yield values((2, 3, 9, 11), dtype), window, size, samples
    yield values((3, 9, 11), dtype), (2, 3), (4, 5), samples[:1]


def _fractional(x: torch.Tensor, window: Any, size: Any, samples: torch.Tensor) -> Any:
    return torch.nn.functional.fractional_max_pool2d(x, window, size, return_indices=True, _random_samples=samples)


CASES = (
    KernelCall(
        "nn.functional.fractional_max_pool2d",
        ("aten::fractional_max_pool2d", "aten::fractional_max_pool2d_backward"),
        _fractional,
        _images,
        gradients=(0,),
    ),
)


def refused() -> Iterator[RefusedCall]:
    """Wrong samples, gradients and positions of maxima."""
    x, window, size = values((4, 3, 8, 8), torch.float32), [2, 2], [3, 3]
    for title, samples in (
        ("samples of too few images", torch.zeros(3, 3, 2)),
        ("samples without images", torch.zeros(4, 3)),
        ("samples of other channels", torch.zeros(4, 2, 2)),
        ("samples of three dimensions", torch.zeros(4, 3, 3)),
        ("samples in half", torch.zeros(4, 3, 2).half()),
    ):
        yield RefusedCall(title, _aten.fractional_max_pool2d, (x, window, size, samples))
    y, places = _aten.fractional_max_pool2d(x, window, size, torch.zeros(4, 3, 2))
    for title, gradient, indices in (
        ("fractional int32 places", y, places.int()),
        ("fractional places of few images", y, places[:2]),
        ("fractional half gradient", y.half(), places),
    ):
        yield RefusedCall(title, _aten.fractional_max_pool2d_backward, (gradient, x, window, size, indices))


def _image(elements: int) -> tuple[torch.Tensor, torch.Tensor]:
    """An image with 16 channels, and the random samples for its windows."""
    side = max(8, math.isqrt(elements // 16))
    return torch.randn(1, 16, side, side), torch.rand(1, 16, 2)


def _half_size(x: torch.Tensor, samples: torch.Tensor) -> torch.Tensor:
    size = (x.shape[-2] // 2, x.shape[-1] // 2)
    return torch.nn.functional.fractional_max_pool2d(x, 2, size, _random_samples=samples)


WORKLOAD = Workload("aten::fractional_max_pool2d.output", _half_size, _image)
