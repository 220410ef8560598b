"""Sparse operands, and the parts that they are made of."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from .operands import Example, call, compressed, coo, dense


def storage(*, placed: bool) -> Callable[[int], Example]:
    """A tensor that takes over another storage, all of it or a part."""

    def make(variant: int) -> Example:
        given = torch.arange(8.0 + variant).untyped_storage()
        return call(dense(2), given, 1, [2, 3], [3, 1]) if placed else call(dense(2 + variant), given)

    return make


def placed_indices(layout: str, *, with_layout: bool = False) -> Callable[[int], Example]:
    """The three tensors of a compressed matrix, and its size."""

    def make(variant: int) -> Example:
        matrix = compressed(layout, variant)
        names = ("crow_indices", "col_indices") if layout in ("csr", "bsr") else ("ccol_indices", "row_indices")
        parts = [getattr(matrix, name)() for name in names]
        tail = (matrix.layout,) if with_layout else ()
        return call(*parts, matrix.values(), list(matrix.shape), *tail)

    return make


def made_compressed(layout: str, *, size: bool) -> Callable[[int], Example]:
    """What a compressed matrix is made of, with or without its size."""

    def make(variant: int) -> Example:
        *parts, shape = placed_indices(layout)(variant).args
        return call(*parts, *([shape] if size else []), layout=getattr(torch, f"sparse_{layout}"))

    return make


def sparse_constructors() -> dict[str, Callable[[int], Example]]:
    """Calls of all that make compressed matrices."""
    made: dict[str, Callable[[int], Example]] = {
        "sparse_compressed_tensor.comp_plain_value": made_compressed("csr", size=False),
        "sparse_compressed_tensor.comp_plain_value_size": made_compressed("csr", size=True),
        "_sparse_compressed_tensor_unsafe": made_compressed("csc", size=True),
    }
    for layout in ("csr", "csc", "bsr", "bsc"):
        parts = "ccol_row" if layout.endswith("c") else "crow_col"
        made[f"sparse_{layout}_tensor.{parts}_value"] = made_compressed(layout, size=False)
        made[f"sparse_{layout}_tensor.{parts}_value_size"] = made_compressed(layout, size=True)
        made[f"_sparse_{layout}_tensor_unsafe"] = made_compressed(layout, size=True)
    return made


def weight_norm_gradient(variant: int) -> Example:
    """Gradient of the weight, direction, magnitude, the norms of the forward, the dimension."""
    rows = 2 + variant
    direction, magnitude = dense(rows, 3), dense(rows, 1)
    norms = direction.norm(dim=1, keepdim=True)
    return call(dense(rows, 3), direction, magnitude, norms, 0)


def of_compressed(layout: str) -> Callable[[int], Example]:
    """One compressed matrix."""
    return lambda variant: call(compressed(layout, variant))


def of_sparse(*tail: Any, **kwargs: Any) -> Callable[[int], Example]:
    """One sparse matrix, and the rest."""
    return lambda variant: call(coo(3, 4 + variant), *tail, **kwargs)


def sparse_gradient(operator: str) -> Callable[[int], Example]:
    """A gradient and a result of a sparse softmax, the dimension, and its input."""

    def make(variant: int) -> Example:
        x = coo(3, 4 + variant)
        result = getattr(torch.sparse, operator)(x, 1)
        return call(result, result, 1, x)

    return make


def sparse_parts(*, layout: bool) -> Callable[[int], Example]:
    """Indices, values and size of a sparse matrix."""

    def make(variant: int) -> Example:
        given = {"layout": torch.sparse_coo} if layout else {}
        return call(torch.tensor([[0, 1, 2], [1, 0, 2 + variant]]), dense(3), [3, 4 + variant], **given)

    return make
