"""Tensors of every kind that an operator may want, and what an example is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

VARIANTS = 4


@dataclass(frozen=True)
class Example:
    """One call's arguments, on the CPU."""

    args: tuple[Any, ...]
    kwargs: dict[str, Any]


def call(*args: Any, **kwargs: Any) -> Example:
    """The arguments as an example."""
    return Example(args, kwargs)


def dense(*shape: int) -> Tensor:
    """Values between 0 and 1, float32, never 0."""
    return torch.rand(shape) * 0.9 + 0.05


def whole(low: int, high: int, *shape: int, dtype: torch.dtype = torch.int64) -> Tensor:
    """Integers from low up to but without high."""
    return torch.randint(low, high, shape).to(dtype)


def coo(rows: int, columns: int, *, entries: int = 4) -> Tensor:
    """A coalesced sparse matrix, float32, with at most so many entries."""
    indices = torch.stack([whole(0, rows, entries), whole(0, columns, entries)])
    return torch.sparse_coo_tensor(indices, dense(entries), (rows, columns)).coalesce()


def uncoalesced(rows: int, columns: int) -> Tensor:
    """A sparse matrix with one place given twice."""
    indices = torch.tensor([[0, 0, rows - 1], [1, 1, columns - 1]])
    return torch.sparse_coo_tensor(indices, dense(3), (rows, columns))


def csr(rows: int, columns: int) -> Tensor:
    """A matrix in the CSR layout."""
    return coo(rows, columns).to_sparse_csr()


def compressed(layout: str, variant: int) -> Tensor:
    """A matrix of 4 or more rows in the layout "csr", "csc", "bsr" or "bsc"."""
    matrix = coo(4 + 2 * variant, 2 * variant + 2).to_dense()
    block = ((2, 1 + variant % 2),) if layout.startswith("b") else ()
    made: Tensor = getattr(matrix, f"to_sparse_{layout}")(*block)
    return made
