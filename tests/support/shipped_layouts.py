"""Tensors of any shape whose elements lie in memory in other ways than one after another."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import torch
from torch import Tensor

Values = Callable[[tuple[int, ...]], Tensor]


def layouts(values: Values, *shape: int) -> Iterator[Tensor]:
    """Tensors of one shape and of whatever values: dense, with an offset, transposed, with steps, expanded."""
    yield values(shape)
    yield values((shape[0] + 1, *shape[1:]))[1:]
    yield values((*shape[:-2], shape[-1], shape[-2])).transpose(-1, -2)
    yield values(tuple(2 * size for size in shape))[tuple(slice(1, None, 2) for _ in shape)]
    yield values((1, *shape[1:])).expand(shape)
    formats = {4: torch.channels_last, 5: torch.channels_last_3d}
    if len(shape) in formats:
        yield values(shape).contiguous(memory_format=formats[len(shape)])
