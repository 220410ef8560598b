"""The calls that verify and time the family."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import torch

from ...audit.model.case import Case
from ..verification.calls import REAL, KernelCall
from ..verification.inputs import integers, values
from ..verification.workload import Workload

_DTYPES = (*REAL, torch.complex64)


def _places(dtype: torch.dtype, accumulate: bool) -> Iterator[tuple[Any, ...]]:
    for shape in ((4, 5), (7, 2, 3)):
        x = values(shape, dtype)
        indices = integers((3, 8), -x.numel(), x.numel())
        if not accumulate:  # any of several values for one position may be kept
            indices = torch.randperm(x.numel(), generator=torch.Generator().manual_seed(1))[:12] - x.numel() // 2
        source = values(indices.shape, dtype)
        if dtype == torch.int64:
            source += 2**40 + 7
        yield x, indices, source, accumulate
    yield x, indices[:0], source[:0], accumulate


def _taken(dtype: torch.dtype) -> Iterator[tuple[Any, ...]]:
    for shape in ((4, 5), (7, 2, 3)):
        x = values(shape, dtype)
        yield x, integers((3, 4), -x.numel(), x.numel())
    yield x, integers((0,), 0, 1)


def undefined(case: Case) -> str:
    """Why a recorded call has no defined result, or ""."""
    accumulate = bool(case.args[3]) if len(case.args) > 3 else bool(case.kwargs.get("accumulate", False))
    if len(case.args) < 3 or accumulate:
        return ""
    x, indices = case.args[:2]
    places = indices.remainder(max(x.numel(), 1))
    repeats = places.unique().numel() < places.numel()
    return "of several values for one place any may win" if repeats else ""


CASES = (
    KernelCall("take", ("aten::take",), torch.take, _taken, _DTYPES, gradients=(0,)),
    KernelCall("put_", ("aten::put_",), torch.Tensor.put_, partial(_places, accumulate=False), _DTYPES, expands=False),
    KernelCall(
        "put_",
        ("aten::put_",),
        torch.Tensor.put_,
        partial(_places, accumulate=True),
        _DTYPES,
        variant="accumulate",
        expands=False,
    ),
    KernelCall(
        "put", ("aten::put_",), torch.put, partial(_places, accumulate=True), variant="accumulate", gradients=(0, 2)
    ),
)


WORKLOAD = Workload("aten::put_", torch.Tensor.put_, lambda n: (torch.randn(n), torch.randperm(n), torch.randn(n)))
