"""The calls that verify and time the family."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import torch

from ..verification.calls import KernelCall, RefusedCall
from ..verification.inputs import rounded_once, values
from ..verification.workload import Workload


def _points(dtype: torch.dtype) -> Iterator[tuple[Any, ...]]:
    for shape in ((5, 3), (4, 100), (1, 3), (3, 0)):
        for p in (0.0, 1.0, 1.5, 2.0, 3.0, math.inf):
            yield values(shape, dtype), p
    yield torch.ones(4, 3, dtype=dtype), 2.0


CASES = (
    KernelCall(
        "nn.functional.pdist",
        ("aten::_pdist_forward", "aten::_pdist_backward"),
        rounded_once(torch.nn.functional.pdist),
        _points,
        gradients=(0,),
    ),
)


def refused() -> Iterator[RefusedCall]:
    """Distances of a wrong dtype."""
    rows = values((4, 5), torch.float32)
    distances = torch.pdist(rows)
    yield RefusedCall("distances in half", torch.ops.aten._pdist_backward, (distances, rows, 2.0, distances.half()))


def _timed_points(elements: int) -> tuple[torch.Tensor]:
    """Points with 32 coordinates, with about `elements` distances between them."""
    return (torch.randn(max(2, math.isqrt(2 * elements)), 32),)


WORKLOAD = Workload("aten::_pdist_forward", torch.nn.functional.pdist, _timed_points, lambda n: 3.0 * 32 * n)
