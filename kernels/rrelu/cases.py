"""The calls that verify and time the family."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import torch

from ...audit.judging.randomness import generators_as_before
from ..verification.calls import KernelCall
from ..verification.inputs import SHAPES, one_tensor, rounded_once, values
from ..verification.workload import Workload, normal


def _numbers(dtype: torch.dtype) -> Iterator[tuple[Any, ...]]:
    for shape in SHAPES:
        yield values(shape, dtype), True
        yield values(shape, dtype), False
    yield torch.tensor([math.nan, 0.0, math.inf]).to(dtype), True


def _negative_numbers(dtype: torch.dtype) -> Iterator[tuple[Any, ...]]:
    """Enough numbers to compare the distribution of their slopes."""
    yield (-values((60, 50), dtype).abs() - 0.5,)


def _rrelu(x: torch.Tensor, training: bool) -> tuple[torch.Tensor, ...]:
    """The result without training; with training, whether the result and the noise have their properties."""
    if not training:
        return (torch.nn.functional.rrelu(x, 0.125, 0.5, False),)
    noise = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    with generators_as_before():  # the compared results do not depend on the draws
        y = torch.ops.aten.rrelu_with_noise.default(x, noise, 0.125, 0.5, True)
    leaks = x <= 0
    bounded = ((noise >= 0.125) & (noise <= 0.5)) == leaks
    return bounded, (noise == 1) == ~leaks, torch.isclose(y, x * noise, rtol=1e-2, equal_nan=True)


def _rrelu_in_place(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
    before = x.clone()
    y = x.float() if x.device.type == "cpu" else x  # the CPU's kernel takes no halves
    noise = torch.empty(y.shape, dtype=y.dtype, device=y.device)
    with generators_as_before():
        torch.ops.aten.rrelu_with_noise_.default(y, noise, 0.125, 0.5, True)
    if y is not x:
        x.copy_(y)
    checks = (noise == 1) == ~(before <= 0), torch.isclose(x, before * noise.to(x.dtype), rtol=1e-2, equal_nan=True)
    x.copy_(before)  # arguments are compared after a call, and this one is random
    return checks


def _slopes(x: torch.Tensor) -> torch.Tensor:
    noise = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    torch.ops.aten.rrelu_with_noise.default(x, noise, 0.125, 0.5, True)
    return noise


_OPERATORS = ("aten::rrelu_with_noise",)

CASES = (
    KernelCall("nn.functional.rrelu", _OPERATORS, rounded_once(_rrelu), _numbers),
    KernelCall("rrelu_with_noise_", ("aten::rrelu_with_noise_",), _rrelu_in_place, one_tensor(), expands=False),
    KernelCall(
        "nn.functional.rrelu", _OPERATORS, rounded_once(_slopes), _negative_numbers, variant="slopes", distribution=True
    ),
)


WORKLOAD = Workload("aten::rrelu_with_noise", lambda x: torch.nn.functional.rrelu(x, training=True), normal)
