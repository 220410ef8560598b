"""The calls that verify and time the family."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import torch

from ..verification.calls import KernelCall
from ..verification.inputs import one_tensor
from ..verification.workload import Workload, normal

_numbers = one_tensor(special=(math.nan, math.inf, -math.inf, 0.0, -0.0, 1.0, -0.5, 65504.0), scale=300.0)


def _numbers_of_all_sizes(dtype: torch.dtype) -> Iterator[tuple[Any, ...]]:
    yield from _numbers(dtype)
    if dtype is torch.float16:  # its subnormals are normal numbers to the float32 that a GPU computes with
        yield (torch.tensor([1, 3, 512, 1023, 1024, -1, -700]).to(torch.float64).div(2**24).to(dtype),)
    else:
        yield (torch.tensor([1.5e-38, -3.4e38, 1e-20, 1e20]).to(dtype),)


def _frexp(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    mantissa, exponent = torch.frexp(x)
    return mantissa, exponent


CASES = (KernelCall("frexp", ("aten::frexp",), _frexp, _numbers_of_all_sizes, gradients=(0,), elementwise=True),)


WORKLOAD = Workload("aten::frexp.Tensor_out", torch.frexp, normal)
