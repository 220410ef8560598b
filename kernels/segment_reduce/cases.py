"""The calls that verify and time the family."""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import partial
from typing import Any

import torch

from ..verification.calls import KernelCall
from ..verification.inputs import values
from ..verification.workload import Workload


def _segments(dtype: torch.dtype, reduce: str) -> Iterator[tuple[Any, ...]]:
    """Numbers, the lengths of their segments, and the axis; the numbers of a segment differ."""
    some = torch.tensor([3, 0, 4])
    for x in (values((7,), dtype), values((7, 5), dtype), values((7, 2, 33), dtype)):
        yield x, reduce, some, 0
    yield values((2, 7, 3), dtype), reduce, torch.tensor([[3, 0, 4], [1, 5, 1]], dtype=torch.int32), 1
    yield values((300,), dtype, 0.1 if reduce == "prod" else 2.0) + (reduce == "prod"), reduce, torch.tensor([300]), 0
    yield values((7, 0), dtype), reduce, some, 0
    x = values((7,), dtype)
    x[1] = 0.0
    yield x, reduce, some, 0


def _special(dtype: torch.dtype) -> Iterator[tuple[Any, ...]]:
    x = torch.tensor([math.nan, 1.0, 2.0, math.inf, -math.inf, 3.0, 0.0]).to(dtype)
    for reduce in ("max", "min", "sum", "mean", "prod"):
        yield x, reduce, torch.tensor([3, 2, 2]), 0


def _by_lengths(x: torch.Tensor, reduce: str, lengths: torch.Tensor, axis: int) -> torch.Tensor:
    return torch.segment_reduce(x, reduce, lengths=lengths, axis=axis)


def _by_offsets(x: torch.Tensor, reduce: str, lengths: torch.Tensor, axis: int) -> torch.Tensor:
    """Offsets from the second number on, with an initial value. The CPU does not check offsets."""
    ends = lengths.cumsum(-1, dtype=lengths.dtype)
    offsets = torch.nn.functional.pad(ends, (1, 0)).clamp(1, x.shape[axis])
    return torch.segment_reduce(x, reduce, offsets=offsets, axis=axis, initial=1.5)


_OPERATORS = ("aten::segment_reduce", "aten::_segment_reduce_backward")

CASES = (
    *(
        KernelCall(
            "segment_reduce",
            _OPERATORS,
            call,
            partial(_segments, reduce=reduce),
            variant=f"{reduce} {by}",
            gradients=(0,),
        )
        for reduce in ("sum", "mean", "max", "min", "prod")
        for by, call in (("by lengths", _by_lengths), ("by offsets", _by_offsets))
    ),
    KernelCall("segment_reduce", _OPERATORS, _by_lengths, _special, variant="special values"),
)


def _timed_segments(elements: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Numbers, and the lengths of segments of 64, the last one shorter or longer."""
    count = max(1, elements // 64)
    lengths = torch.full((count,), 64)
    lengths[-1] = elements - 64 * (count - 1)
    return torch.randn(elements), lengths


def _sums(x: torch.Tensor, lengths: torch.Tensor) -> torch.Tensor:
    return torch.segment_reduce(x, "sum", lengths=lengths, unsafe=True)


WORKLOAD = Workload("aten::segment_reduce", _sums, _timed_segments)
