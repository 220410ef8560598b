"""What verifies the family."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch

from ..verification.calls import KernelCall
from ..verification.inputs import values


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
