"""The calls that verify and time the family."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch

from ..verification.calls import KernelCall, RefusedCall
from ..verification.inputs import values
from ..verification.workload import Workload, volume

_functional = torch.nn.functional


def _volumes(dtype: torch.dtype) -> Iterator[tuple[Any, ...]]:
    for size in ((1, 1, 2), (3, 1, 5), (5, 6, 7), (8, 4, 9)):
        yield values((2, 3, 5, 6, 7), dtype), size
    yield values((3, 5, 6, 7), dtype), (2, 2, 2)
    yield values((1, 2, 20, 20, 20), dtype), (2, 2, 1)
    yield values((0, 2, 4, 4, 4), dtype), (2, 2, 2)


def _uneven_images(dtype: torch.dtype) -> Iterator[tuple[Any, ...]]:
    """Sizes that do not divide each other; torch's own kernel supports all others."""
    for size in ((2, 3), (4, 4), (7, 5)):
        yield values((2, 3, 5, 7), dtype), size
    yield values((3, 11, 12), dtype), (3, 3)


CASES = (
    KernelCall(
        "nn.functional.adaptive_avg_pool3d",
        (
            "aten::_adaptive_avg_pool3d",
            "aten::adaptive_avg_pool3d",
            "aten::_adaptive_avg_pool3d_backward",
            "aten::adaptive_avg_pool3d_backward",
        ),
        _functional.adaptive_avg_pool3d,
        _volumes,
        gradients=(0,),
    ),
    KernelCall(
        "nn.functional.adaptive_avg_pool2d",
        ("aten::_adaptive_avg_pool2d", "aten::adaptive_avg_pool2d", "aten::_adaptive_avg_pool2d_backward"),
        _functional.adaptive_avg_pool2d,
        _uneven_images,
        variant="uneven",
        gradients=(0,),
    ),
)


def refused() -> Iterator[RefusedCall]:
    """Gradients of a wrong shape or dtype."""
    x, gradient = values((1, 2, 4, 4, 4), torch.float32), values((1, 2, 2, 2, 2), torch.float32)
    for title, given in (("average of four dimensions", gradient[0]), ("average in half", gradient.half())):
        yield RefusedCall(title, torch.ops.aten._adaptive_avg_pool3d_backward, (given, x))


WORKLOAD = Workload("aten::_adaptive_avg_pool3d", lambda x: torch.nn.functional.adaptive_avg_pool3d(x, 4), volume)
