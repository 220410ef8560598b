"""The WORKLOAD of a family's `cases.py`: one call to time, with inputs of any size."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

# Rows of workloads are not longer.
_LONGEST_ROW = 1024


@dataclass(frozen=True)
class Workload:
    """One call to time.

    Attributes:
        operator: the overload that is timed, `aten::mode`.
        call: called with the result of `arguments`.
        arguments: takes a number of elements, returns tensors on the default device; the largest has about that many.
        operations: takes the same number, returns the arithmetic operations; None if the call is bound by memory.
    """

    operator: str
    call: Callable[..., Any]
    arguments: Callable[[int], tuple[Any, ...]]
    operations: Callable[[int], float] | None = None


def normal(elements: int) -> tuple[torch.Tensor]:
    """One vector of normally distributed numbers."""
    return (torch.randn(elements),)


def rows_and_columns(elements: int) -> tuple[int, int]:
    """The shape of a matrix of about `elements` elements."""
    columns = min(elements, _LONGEST_ROW)
    return max(1, elements // columns), columns


def volume(elements: int) -> tuple[torch.Tensor]:
    """One cube with sixteen channels and about `elements` elements in all."""
    side = max(4, round((elements / 16) ** (1 / 3)))
    return (torch.randn(1, 16, side, side, side),)
