"""The calls that verify and time the family."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch

from ..verification.calls import REAL, KernelCall
from ..verification.inputs import values
from ..verification.workload import Workload

_DTYPES = (*REAL, torch.complex64)


def _channels(dtype: torch.dtype) -> Iterator[tuple[Any, ...]]:
    for shape, groups in (((2, 6, 5), 3), ((2, 6, 3, 5), 2), ((1, 4, 2, 3, 2), 4), ((3, 4, 7), 1), ((0, 4, 2), 2)):
        yield values(shape, dtype), groups
    yield values((2, 6, 3, 5), dtype).to(memory_format=torch.channels_last), 3


def _parts(dtype: torch.dtype) -> Iterator[tuple[Any, ...]]:
    for dim, start, length in ((0, 1, 3), (-1, -4, 2), (1, 0, 5), (0, 7, 0)):
        yield values((7, 5), dtype), dim, start, length
    yield values((129,), dtype), 0, 3, 120


def _narrowed(x: torch.Tensor, dim: int, start: int, length: int) -> torch.Tensor:
    return torch.narrow_copy(x, dim, start, length, out=torch.empty(0, dtype=x.dtype, device=x.device))


CASES = (
    KernelCall(
        "channel_shuffle", ("aten::channel_shuffle",), torch.channel_shuffle, _channels, _DTYPES, gradients=(0,)
    ),
    KernelCall("narrow_copy", ("aten::narrow_copy",), _narrowed, _parts, _DTYPES, variant="out"),
)


WORKLOAD = Workload(
    "aten::channel_shuffle", lambda x: torch.channel_shuffle(x, 4), lambda n: (torch.randn(1, 16, max(1, n // 16)),)
)
