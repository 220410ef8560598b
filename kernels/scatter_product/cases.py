"""The calls that verify and time the family."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Any

import torch

from ..verification.calls import KernelCall
from ..verification.inputs import integers
from ..verification.workload import Workload

# The shapes of the target and of the source, and the dimension.
_SHAPES: tuple[tuple[Any, ...], ...] = (
    ((5,), (40,), 0),
    ((3, 4), (3, 9), 1),
    ((4, 3, 2), (7, 2, 2), -3),
    ((), (), 0),
    ((3, 2), (0, 2), 0),
)


def _products(dtype: torch.dtype) -> Iterator[tuple[Any, ...]]:
    """Odd products that wrap, small ones with zeros, and products of many twos."""
    for shape, sources, dim in _SHAPES:
        index, self = integers(sources, 0, shape[dim] if shape else 1), integers(shape, -5, 6)
        odd = integers(sources, -(2**62), 2**62) | 1
        yield self, dim, index, odd.to(dtype), "prod", False
        yield self, dim, index, integers(sources, -9, 10).to(dtype), "prod", True
    yield self.new_ones(4), 0, integers((9,), 0, 4), integers((9,), 1, 4) * 2**11, "prod", True
    yield self.new_ones(4), 0, integers((9,), 0, 4).int(), integers((9,), 1, 4), "prod", True


def _some(dtype: torch.dtype) -> Iterator[tuple[Any, ...]]:
    return islice(_products(dtype), 4)


def _new(x: torch.Tensor, *arguments: Any) -> torch.Tensor:
    return torch.scatter_reduce(x, *arguments[:-1], include_self=arguments[-1])


def _in_place(x: torch.Tensor, *arguments: Any) -> torch.Tensor:
    return x.scatter_reduce_(*arguments[:-1], include_self=arguments[-1])


def _into(x: torch.Tensor, *arguments: Any) -> torch.Tensor:
    out = torch.empty(0, dtype=x.dtype, device=x.device)
    return torch.scatter_reduce(x, *arguments[:-1], include_self=arguments[-1], out=out)


CASES = (
    KernelCall("scatter_reduce", ("aten::scatter_reduce",), _new, _products, (torch.int64,), variant="prod"),
    KernelCall(
        "scatter_reduce",
        ("aten::scatter_reduce_",),
        _in_place,
        _some,
        (torch.int64,),
        variant="prod, in place",
        expands=False,
    ),
    KernelCall("scatter_reduce", ("aten::scatter_reduce",), _into, _some, (torch.int64,), variant="prod, out"),
)


def _product(x: torch.Tensor, index: torch.Tensor, source: torch.Tensor) -> torch.Tensor:
    return torch.scatter_reduce(x, 0, index, source, "prod")


def _scattered(elements: int) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    to = max(1, elements // 8)
    return torch.ones(to, dtype=torch.int64), torch.randint(to, (elements,)), torch.randint(-99, 99, (elements,))


WORKLOAD = Workload("aten::scatter_reduce.two", _product, _scattered)
