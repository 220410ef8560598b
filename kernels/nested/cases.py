"""The calls that verify and time the family."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch

from ..verification.calls import REAL, KernelCall
from ..verification.inputs import values
from ..verification.workload import Workload

_DTYPES = (*REAL, torch.complex64)
_aten = torch.ops.aten
# Offsets of items, and the longest that is kept.
_ITEMS = (([0, 3, 3, 7], 4), ([0, 7], 5), ([0, 1, 7], 9), ([0, 0, 7], 7))
_INNER = ((), (5,), (2, 4), (16,), (0,))


def _masks(dtype: torch.dtype) -> Iterator[tuple[Any, ...]]:
    for rows in ([[1, 1, 0], [1, 1, 1]], [[1, 0, 1], [1, 1, 1]], [[0, 0, 0]], [[0, 1, 0], [1, 0, 0]]):
        mask = torch.tensor(rows, dtype=torch.bool)
        yield values((*mask.shape, 4), dtype), mask


def _rows(dtype: torch.dtype) -> Iterator[tuple[Any, ...]]:
    for borders, longest in _ITEMS:
        for inner in _INNER:
            for offsets in (torch.tensor(borders), torch.tensor(borders, dtype=torch.int32)):
                yield values((7, *inner), dtype), offsets, longest


def _is_left_aligned(t: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    return torch.tensor(torch._nested_tensor_from_mask_left_aligned(t, mask), device=t.device)


def _padded(x: torch.Tensor, offsets: torch.Tensor, longest: int) -> torch.Tensor:
    return _aten._jagged_to_padded_dense_forward(x, [offsets], [longest], 1.5)  # type: ignore[no-any-return]


def _items(dtype: torch.dtype) -> Iterator[tuple[Any, ...]]:
    for borders, _ in _ITEMS:
        for inner in _INNER:
            for total in (None, 7):
                yield values((len(borders) - 1, 8, *inner), dtype), torch.tensor(borders), total


def _jagged(x: torch.Tensor, offsets: torch.Tensor, total: int | None) -> torch.Tensor:
    return _aten._padded_dense_to_jagged_forward(x, [offsets], total)  # type: ignore[no-any-return]


CASES = (
    KernelCall(
        "_nested_tensor_from_mask_left_aligned",
        ("aten::_nested_tensor_from_mask_left_aligned",),
        _is_left_aligned,
        _masks,
        (torch.float32,),
    ),
    KernelCall("_jagged_to_padded_dense_forward", ("aten::_jagged_to_padded_dense_forward",), _padded, _rows, REAL),
    KernelCall("_padded_dense_to_jagged_forward", ("aten::_padded_dense_to_jagged_forward",), _jagged, _items, _DTYPES),
)


def _timed(elements: int) -> tuple[torch.Tensor, torch.Tensor, int]:
    """Items of 1 to 64 rows, each of 64 numbers."""
    rows = max(2, elements // 64)
    return torch.randn(rows, 64), torch.tensor([0, *range(1, rows, 33), rows]), 64


WORKLOAD = Workload("aten::_jagged_to_padded_dense_forward", _padded, _timed)
