"""Models of releases' kernels for windows and indices: pooling, index_reduce."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import torch
from torch import Tensor

from .memory_order import of_contiguous_tensors
from .prediction import Model, Prediction, ReplacedResult, Ulp

Pool = Callable[..., tuple[Tensor, Tensor]]
MAX_POOL2D = torch.ops.aten.max_pool2d_with_indices


def adaptive_max_pool2d(ulp: Ulp, input: Tensor, output_size: Sequence[int]) -> Any:
    """All windows have the same size and step. A NaN counts only if it is the first element of its window."""
    return _in_windows_of_one_size(partial(_pooled, MAX_POOL2D), input, output_size)


def adaptive_max_pool2d_of_graphs(ulp: Ulp, input: Tensor, output_size: Sequence[int]) -> Any:
    """All windows have the same size and step. A NaN counts wherever it is in its window."""
    return _in_windows_of_one_size(MAX_POOL2D, input, output_size) if input.isnan().any() else None


def _in_windows_of_one_size(pool: Pool, input: Tensor, output_size: Sequence[int]) -> Any:
    sizes = [(size, wanted) for size, wanted in zip(input.shape[-2:], output_size, strict=True)]
    is_larger = all(wanted >= size for size, wanted in sizes) and output_size[0] > input.shape[-2]
    if is_larger:  # both are exchanged, and the result has fewer places than were asked for
        sizes = [(wanted, size) for size, wanted in sizes]
    if any(wanted > size or wanted == 0 for size, wanted in sizes):
        return None
    steps = [size // wanted for size, wanted in sizes]
    windows = [size - (wanted - 1) * step for (size, wanted), step in zip(sizes, steps, strict=True)]
    if is_larger and any(window > size for window, size in zip(windows, input.shape[-2:], strict=True)):
        return None  # refused
    pooled = pool(input, windows, steps)
    return tuple(map(ReplacedResult, pooled)) if is_larger else pooled


def max_pool_by_greater_than(pool: Pool) -> Model:
    """The model of a max pool that compares with `>`: a NaN counts only if it is the first element of its window."""

    def model(ulp: Ulp, input: Tensor, *geometry: Any, **keywords: Any) -> Any:
        return _pooled(pool, input, *geometry, **keywords) if input.isnan().any() else None

    return model


def _pooled(pool: Pool, input: Tensor, *geometry: Any, **keywords: Any) -> tuple[Tensor, Tensor]:
    if not input.isnan().any():
        return pool(input, *geometry, **keywords)
    dimensions = 2 if pool is MAX_POOL2D else 3
    values, indices = pool(input.nan_to_num(-torch.inf, torch.inf, -torch.inf), *geometry, **keywords)
    plane = input.shape[-dimensions:]
    places = torch.arange(plane.numel(), dtype=torch.float64).view(plane).expand(input.shape)
    first = -pool(-places.contiguous(), *geometry, **keywords)[0].long()
    leading = input.flatten(-dimensions).gather(-1, first.flatten(-dimensions)).view(first.shape)
    return torch.where(leading.isnan(), leading, values), torch.where(leading.isnan(), first, indices)


def skipping_in_equal_windows(ulp: Ulp, input: Tensor, output_size: Sequence[int]) -> Any:
    """As `max_pool_by_greater_than`, if the input's sizes are divisible by the output's."""
    divide = all(size % wanted == 0 for size, wanted in zip(input.shape[-2:], output_size, strict=True) if wanted)
    return adaptive_max_pool2d(ulp, input, output_size) if divide and input.isnan().any() else None


def index_reduce(
    ulp: Ulp, input: Tensor, dim: int, index: Tensor, source: Tensor, reduce: str, *, include_self: bool = True
) -> Tensor | None:
    """The largest or smallest element, ignoring NaN."""
    if reduce not in ("amax", "amin"):
        return None
    least = -torch.inf if reduce == "amax" else torch.inf
    numbers = (torch.where(tensor.isnan(), least, tensor) for tensor in (input, source))
    target, added = numbers
    return torch.index_reduce(target, dim, index, added, reduce, include_self=include_self)


WINDOWS = (
    Prediction("adaptive-windows-of-one-size", {"aten::adaptive_max_pool2d": adaptive_max_pool2d}),
    Prediction("adaptive-windows-with-nan", {"aten::adaptive_max_pool2d": adaptive_max_pool2d_of_graphs}),
    Prediction(
        "max-pool-skips-nan",
        {
            "aten::max_pool2d_with_indices": max_pool_by_greater_than(MAX_POOL2D),
            "aten::max_pool3d_with_indices": max_pool_by_greater_than(torch.ops.aten.max_pool3d_with_indices),
            "aten::adaptive_max_pool2d": skipping_in_equal_windows,
        },
    ),
    Prediction(
        "indices-of-infinite-maxima",
        {"aten::max_pool3d_with_indices": of_contiguous_tensors("max_pool3d_with_indices")},
    ),
    Prediction("index-reduce-loses-nan", {"aten::index_reduce": index_reduce}),
)
