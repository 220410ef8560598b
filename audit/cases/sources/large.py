"""Tensors of more than 2^31 elements, on request: positions in them do not fit into 32 bits.

A case needs 8 GiB of memory or more. Each is the only case of its group, so that a worker holds one of them
at a time. It is skipped with the reason if the machine, or the worker's limit, has less than it needs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import torch
from torch import Tensor

from ...model.case import Case, CaseSource
from ...model.group import GroupKey
from ...model.selection import Samples
from .memory import GIB, lacking_memory

ELEMENTS = (1 << 31) + 1
ROWS, COLUMNS = 65_537, 32_769  # together more than 2^31 as well, in two dimensions
VARIANT = "2^31"
# A prime, so that no block of a kernel sees the same values as its neighbour.
PERIOD = 113
# What a worker needs besides the tensors: torch, the device and the stored results.
OVERHEAD_GIB = 1.0

Make = Callable[[torch.dtype], tuple[Any, ...]]


@dataclass(frozen=True)
class LargeCall:
    """One call with a large tensor.

    Attributes:
        operator: its name in ATen.
        call: the operator.
        make: makes the arguments; the first is the large tensor.
        dtype: a narrow one, to keep the tensor small.
        copies: how many tensors of that size exist at the same time while the case is judged: the case's own, a copy
            on each device, what each device returns, and what is compared of it.
    """

    operator: str
    call: Callable[..., Any]
    make: Make
    dtype: str = "int8"
    copies: int = 6

    @property
    def need_gib(self) -> float:
        """The memory that judging the case takes, in GiB."""
        size: int = getattr(torch, self.dtype).itemsize
        return self.copies * ELEMENTS * size / GIB + OVERHEAD_GIB


def vector(dtype: torch.dtype) -> Tensor:
    """A vector of `ELEMENTS` small values that repeat with a prime period."""
    return _periodic(torch.empty(ELEMENTS, dtype=dtype))


def matrix(dtype: torch.dtype) -> Tensor:
    """A matrix of `ROWS` by `COLUMNS`, filled as `vector`."""
    return _periodic(torch.empty(ROWS * COLUMNS, dtype=dtype)).view(ROWS, COLUMNS)


def _periodic(flat: Tensor) -> Tensor:
    pattern = (torch.arange(PERIOD) % 2 == 0) if flat.dtype is torch.bool else torch.arange(PERIOD).to(flat.dtype)
    whole = flat.numel() // PERIOD * PERIOD
    flat[:whole].view(-1, PERIOD).copy_(pattern.expand(whole // PERIOD, PERIOD))
    flat[whole:] = pattern[: flat.numel() - whole]
    return flat


def ends() -> Tensor:
    """The first two indices, the last index that fits into 31 bits, and the last."""
    return torch.tensor([0, 1, (1 << 31) - 1, ELEMENTS - 1])


def last(x: Tensor) -> Tensor:
    """A copy of the slice after 2^31 - 8 elements."""
    return x[(1 << 31) - 8 :].clone()


def fill_last(x: Tensor) -> Tensor:
    """Fills the elements after 2^31 - 8, and returns those at `ends`."""
    x[(1 << 31) - 8 :].fill_(7)
    return x[ends().to(x.device)]


def sum_in_own_dtype(x: Tensor) -> Tensor:
    """The sum, which may overflow and wrap: in int64 the CPU would make a copy of eight times the size."""
    return torch.sum(x, dtype=x.dtype)


CALLS: tuple[LargeCall, ...] = (
    LargeCall("add", torch.add, lambda dtype: (vector(dtype), 1)),
    LargeCall("neg", torch.neg, lambda dtype: (vector(dtype),)),
    LargeCall("bitwise_not", torch.bitwise_not, lambda dtype: (vector(dtype),), "uint8"),
    LargeCall("eq", torch.eq, lambda dtype: (vector(dtype), 3), "uint8"),
    LargeCall("clamp", torch.clamp, lambda dtype: (vector(dtype), 5, 50)),
    LargeCall("relu", torch.relu, lambda dtype: (vector(dtype),)),
    LargeCall("logical_not", torch.logical_not, lambda dtype: (vector(dtype),), "bool"),
    LargeCall("mul", torch.mul, lambda dtype: (vector(dtype), 0.5), "float16"),
    LargeCall("sum", sum_in_own_dtype, lambda dtype: (vector(dtype),), copies=4),
    LargeCall("sum", lambda x: torch.sum(x, 0, dtype=x.dtype), lambda dtype: (matrix(dtype),), "uint8", 4),
    LargeCall("amax", torch.amax, lambda dtype: (vector(dtype),), copies=4),
    LargeCall("argmax", torch.argmax, lambda dtype: (vector(dtype),), copies=4),
    LargeCall("any", torch.any, lambda dtype: (vector(dtype),), "bool", 4),
    LargeCall("count_nonzero", torch.count_nonzero, lambda dtype: (vector(dtype),), copies=4),
    LargeCall("clone", torch.clone, lambda dtype: (vector(dtype),)),
    LargeCall("flip", torch.flip, lambda dtype: (vector(dtype), [0])),
    LargeCall("cat", torch.cat, lambda dtype: ([vector(dtype), torch.ones(3, dtype=dtype)],)),
    LargeCall("t", lambda x: x.t().contiguous(), lambda dtype: (matrix(dtype),), "uint8"),
    LargeCall("slice", last, lambda dtype: (vector(dtype),), copies=4),
    LargeCall("fill_", fill_last, lambda dtype: (vector(dtype),), copies=5),
    LargeCall("index_select", torch.index_select, lambda dtype: (vector(dtype), 0, ends()), copies=4),
    LargeCall("gather", torch.gather, lambda dtype: (vector(dtype), 0, ends()), copies=4),
)


class LargeSource(CaseSource):
    """Elementwise operators, reductions and copies over more than 2^31 elements."""

    name = "large"
    opt_in = True

    def groups(self) -> Iterable[GroupKey]:
        """One group for each call, so that no two of their tensors exist at once."""
        return self._calls

    def cases(self, key: GroupKey, samples: Samples) -> Iterator[Case]:
        """The only case of a group; it is skipped, and no tensor made, if there is too little memory."""
        large = self._calls[replace(key, mode="fallback")]  # the strict mode repeats the same cases
        title = f"{ELEMENTS:,} elements"
        skipped = lacking_memory(large.need_gib)
        if skipped:
            yield Case(large.call, title=title, skipped=skipped)
        else:
            yield Case(large.call, large.make(getattr(torch, large.dtype)), title=title)

    @cached_property
    def _calls(self) -> dict[GroupKey, LargeCall]:
        return {GroupKey(self.name, large.operator, VARIANT, large.dtype, "fallback"): large for large in CALLS}
