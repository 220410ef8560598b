"""One row of the table of compiled calls, and inputs that many rows share."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

FLOATING = ("float32", "float16", "bfloat16")

Inputs = Callable[[torch.dtype], Iterable[tuple[Any, ...]]]


@dataclass(frozen=True)
class CompiledScenario:
    """One row of a table.

    Attributes:
        operator: the operator of the calls, as reports name it.
        variant: what distinguishes the calls.
        call: the call.
        inputs: makes the positional arguments of each case for a dtype.
        dtypes: the dtypes to make them in.
        differentiable: whether gradients are compared too.
        refused: whether the CPU refuses the call. The compiled call must refuse it too.
        distribution: whether the results are random numbers, whose distribution is compared.
    """

    operator: str
    variant: str
    call: Callable[..., Any]
    inputs: Inputs
    dtypes: tuple[str, ...]
    differentiable: bool = False
    refused: bool = False
    distribution: bool = False


def numbers(dtype: torch.dtype, *shape: int) -> Tensor:
    """Numbers of both signs, for uint8 from 0 on. Floating ones are near 1, so that products stay in range."""
    if dtype.is_floating_point:
        return (torch.randn(*shape) * 0.1 + 1).to(dtype)
    return torch.randint(0 if dtype is torch.uint8 else -99, 100, shape).to(dtype)


def small_matrix(dtype: torch.dtype) -> Iterator[tuple[Any, ...]]:
    """One small matrix."""
    yield (numbers(dtype, 5, 7),)
