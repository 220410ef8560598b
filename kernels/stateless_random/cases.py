"""The calls that verify and time the family, on a torch that has the operators."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import torch

from ..verification.calls import FLOATING, INTEGERS, KernelCall
from ..verification.workload import Workload

_aten = torch.ops.aten
# Outputs, and the batch of keys that fills them.
_SHAPES: tuple[tuple[tuple[int, ...], tuple[int, ...]], ...] = (
    ((37,), ()),
    ((4, 10), ()),
    ((), ()),
    ((0, 3), ()),
    ((3, 7), (3, 1)),
    ((2, 3, 5), (2, 1, 1)),
    ((2, 3, 4), (1, 3, 1)),
    ((2, 3), (2, 3)),
)


def _keys(batch: tuple[int, ...]) -> torch.Tensor:
    """Seeds and offsets of 64 bits."""
    generator = torch.Generator().manual_seed(len(batch))
    limits = torch.iinfo(torch.int64)
    words = torch.randint(limits.min, limits.max, (*batch, 2), generator=generator)
    return words.view(torch.uint64)


def _filled(name: str) -> Callable[..., torch.Tensor]:
    """The in-place operator on a new tensor of a shape and dtype."""

    def call(key: torch.Tensor, shape: tuple[int, ...], dtype: torch.dtype, *limits: Any) -> torch.Tensor:
        out = torch.zeros(shape, dtype=dtype, device=key.device)
        return getattr(_aten, name)(out, key, *limits)  # type: ignore[no-any-return]

    return call


def _draws(*limits: Any) -> Callable[[torch.dtype], Iterator[tuple[Any, ...]]]:
    def inputs(dtype: torch.dtype) -> Iterator[tuple[Any, ...]]:
        for shape, batch in _SHAPES:
            yield _keys(batch), shape, dtype, *limits

    return inputs


def _split(dtype: torch.dtype) -> Iterator[tuple[Any, ...]]:
    for batch in ((), (3,), (2, 0), (2, 3)):
        yield _keys(batch), 5


_ROWS = (
    ("_philox_key_split", lambda key, splits: _aten._philox_key_split(key, splits), _split, (torch.int64,)),
    ("_philox_key_fold_in", lambda key, data: _aten._philox_key_fold_in(key, data), _split, (torch.int64,)),
    ("_philox_uniform_", _filled("_philox_uniform_"), _draws(-1.5, 2.25), FLOATING),
    ("_philox_normal_", _filled("_philox_normal_"), _draws(0.5, 3.0), FLOATING),
    ("_philox_randint_", _filled("_philox_randint_"), _draws(), INTEGERS),
    ("_philox_randint_", _filled("_philox_randint_"), _draws(3, 100), INTEGERS),
)
CASES = tuple(
    KernelCall(name, (f"aten::{name}",), call, inputs, dtypes, variant=f"{inputs.__name__} {at}", expands=False)
    for at, (name, call, inputs, dtypes) in enumerate(_ROWS)
    if hasattr(_aten, name)
)


def _fill(key: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
    return torch.ops.aten._philox_normal_(x, key)  # type: ignore[no-any-return]


def _key_and_numbers(elements: int) -> tuple[torch.Tensor, torch.Tensor]:
    return torch.tensor([42, 0], dtype=torch.uint64), torch.empty(elements)


WORKLOAD = Workload("aten::_philox_normal_", _fill, _key_and_numbers)
