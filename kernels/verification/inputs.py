"""Inputs for the verification of many families; they are the same in every run."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch

from ...audit.model.nested import map_leaves
from .calls import Inputs

SHAPES = ((7, 5), (3, 4, 6), (129,), (), (0, 3))
SPECIAL = (math.nan, math.inf, -math.inf, 0.0)


def values(shape: Sequence[int], dtype: torch.dtype, scale: float = 2.0) -> torch.Tensor:
    """Numbers from a fixed seed: normal for floating and complex dtypes, else -3 to 3 (uint8: 0 to 6; bool: 0, 1)."""
    generator = torch.Generator().manual_seed(sum(shape) + len(shape))
    if dtype.is_complex:
        parts = torch.randn((*shape, 2), generator=generator) * scale
        return torch.view_as_complex(parts)
    if dtype.is_floating_point:
        return (torch.randn(tuple(shape), generator=generator) * scale).to(dtype)
    low, high = (0, 2) if dtype == torch.bool else (0, 7) if dtype == torch.uint8 else (-3, 4)
    return torch.randint(low, high, tuple(shape), generator=generator).to(dtype)


def integers(shape: Sequence[int], low: int, high: int) -> torch.Tensor:
    """Integers from a fixed seed, from `low` to `high` - 1."""
    return torch.randint(low, high, tuple(shape), generator=torch.Generator().manual_seed(sum(shape)))


def one_tensor(*arguments: Any, special: Sequence[float] = SPECIAL, scale: float = 2.0) -> Inputs:
    """Inputs of one tensor in many shapes, and one tensor of `special` values; `arguments` follow each tensor."""

    def inputs(dtype: torch.dtype) -> Iterator[tuple[Any, ...]]:
        for shape in SHAPES:
            yield values(shape, dtype, scale), *arguments
        if dtype.is_floating_point:
            yield torch.tensor(special).to(dtype), *arguments

    return inputs


def probabilities(*arguments: Any) -> Inputs:
    """Inputs of one tensor between 0 and 1 in many shapes, and of 0, 1, NaN and numbers outside; `arguments` follow."""

    def inputs(dtype: torch.dtype) -> Iterator[tuple[Any, ...]]:
        for shape in SHAPES:
            yield torch.rand(shape, generator=torch.Generator().manual_seed(3)).to(dtype), *arguments
        yield torch.tensor([0.0, 1.0, -0.5, 1.5, math.nan]).to(dtype), *arguments

    return inputs


def rounded_once(call: Callable[..., Any]) -> Callable[..., Any]:
    """Make the CPU compute half and bfloat16 calls in float32 and round once, as some CPU kernels take no halves."""

    @functools.wraps(call)
    def answer(*args: Any) -> Any:
        dtype, device = args[0].dtype, args[0].device
        if device.type != "cpu" or dtype not in (torch.float16, torch.bfloat16):
            return call(*args)
        return map_leaves(_cast(torch.float32, dtype), call(*map_leaves(_cast(dtype, torch.float32), args)))

    return answer


def _cast(dtype: torch.dtype, other: torch.dtype) -> Callable[[Any], Any]:
    """Return a function that converts tensors of `dtype` to `other`, and leaves all other values unchanged."""
    return lambda leaf: leaf.to(other) if isinstance(leaf, torch.Tensor) and leaf.dtype is dtype else leaf
