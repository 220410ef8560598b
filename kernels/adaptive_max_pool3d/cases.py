"""The calls that verify and time the family."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch

from ..verification.calls import KernelCall, RefusedCall
from ..verification.inputs import values
from ..verification.workload import Workload, volume


def _volumes(dtype: torch.dtype) -> Iterator[tuple[Any, ...]]:
    for size in ((1, 1, 2), (3, 1, 5), (5, 6, 7), (8, 4, 9)):
        yield values((2, 3, 5, 6, 7), dtype), size
    yield values((3, 5, 6, 7), dtype), (2, 2, 2)
    yield values((1, 2, 20, 20, 20), dtype), (2, 2, 1)
    yield values((0, 2, 4, 4, 4), dtype), (2, 2, 2)


def _max_pool3d(x: torch.Tensor, size: tuple[int, int, int]) -> Any:
    return torch.nn.functional.adaptive_max_pool3d(x, size, return_indices=True)


CASES = (
    KernelCall(
        "nn.functional.adaptive_max_pool3d",
        ("aten::adaptive_max_pool3d", "aten::adaptive_max_pool3d_backward"),
        _max_pool3d,
        _volumes,
        gradients=(0,),
    ),
)


def refused() -> Iterator[RefusedCall]:
    """Wrong positions of maxima."""
    aten = torch.ops.aten
    x = values((1, 2, 4, 4, 4), torch.float32)
    y, places = aten.adaptive_max_pool3d(x, [2, 2, 2])
    for title, indices in (("largest int32 places", places.int()), ("largest places of one column", places[..., :1])):
        yield RefusedCall(title, aten.adaptive_max_pool3d_backward, (y, x, indices))


WORKLOAD = Workload("aten::adaptive_max_pool3d.out", lambda x: torch.nn.functional.adaptive_max_pool3d(x, 4), volume)
