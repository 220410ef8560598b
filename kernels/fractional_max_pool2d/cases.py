"""What verifies the family."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch

from ..verification.calls import KernelCall, RefusedCall
from ..verification.inputs import values

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
    """Samples, gradients and places of maxima that do not fit."""
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
