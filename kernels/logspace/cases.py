"""The calls that verify and time the family."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch

from ..verification.calls import FLOATING, INTEGERS, KernelCall
from ..verification.workload import Workload

_DTYPES = (*FLOATING, *INTEGERS, torch.complex64)
_RANGES = ((0.0, 2.0, 5, 10.0), (-3.7, 4.1, 129, 2.0), (1.0, -2.5, 64, 7.3), (0.5, 3.0, 1, 10.0), (0.0, 1.0, 0, 10.0))
_OF_FLOATS = ((-37.0, 38.0, 301, 10.0), (3.0, 3.0, 7, 2.5), (2, 5, 4, 0.25), (0, 3, 4, -2.0), (0.0, 1.0, 3, 0.0))


def _ranges(dtype: torch.dtype) -> Iterator[tuple[Any, ...]]:
    """An output, and the range of its numbers."""
    many = (*_RANGES, *_OF_FLOATS) if dtype in (torch.float32, torch.bfloat16) else _RANGES
    for start, end, steps, base in many:
        yield torch.zeros(steps, dtype=dtype), start, end, base
    yield torch.zeros(2, 3, dtype=dtype), 0.0, 2.0, 10.0


def _written(out: torch.Tensor, start: float, end: float, base: float) -> torch.Tensor:
    return torch.logspace(start, end, out.numel(), base, out=out)


CASES = (KernelCall("logspace", ("aten::logspace",), _written, _ranges, _DTYPES, expands=False),)


WORKLOAD = Workload(
    "aten::logspace.out", lambda out: torch.logspace(-3, 3, out.numel(), out=out), lambda n: (torch.empty(n),)
)
