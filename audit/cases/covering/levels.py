"""The levels of a case, read from its inputs. This must be cheap: it runs for every case."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch
from torch import Tensor

from ...model.case import Case
from ...model.nested import leaves
from .pairs import (
    DIMENSIONS,
    DTYPE,
    FORM,
    GIVEN,
    GRADIENT,
    LAYOUT,
    OTHER_LAYOUTS,
    SHAPES,
    SIZE,
    STORAGE,
    VALUES,
    Levels,
)

# Kernels take other ways above so many rows and elements.
MANY_ROWS = 1024
LARGE = 65_536
VERY_LARGE = 131_072


def levels_of(case: Case) -> Levels:
    """The case's level of each factor."""
    arguments = (case.args, case.kwargs)
    tensors = [leaf for leaf in leaves(arguments) if isinstance(leaf, Tensor)]
    levels = [(VALUES, case.values), (FORM, case.form), (GIVEN, _given(case))]
    if tensors:
        first, *others = tensors
        levels += [
            (DTYPE, ", ".join(dict.fromkeys([DTYPE_NAMES[t.dtype] for t in tensors]))),
            (LAYOUT, layout_of(first)),
            (SIZE, size_of(tensors)),
            (DIMENSIONS, str(first.dim())),
            (GRADIENT, _gradient(tensors) if case.differentiable else "none"),
        ]
        if others:
            layouts = dict.fromkeys([layout_of(t) for t in others])
            levels += [
                (OTHER_LAYOUTS, ", ".join(layouts)),
                (SHAPES, _shapes(first, others)),
                (STORAGE, _storage(tensors)),
            ]
    levels += [(str(position), kind_of(value)) for position, value in enumerate(case.args)]
    levels += [(name, kind_of(value)) for name, value in case.kwargs.items()]
    levels += [(name, kind_of(value)) for name, value in getattr(case.call, "flags", {}).items()]
    return tuple(levels)


DTYPE_NAMES = {
    value: str(value).removeprefix("torch.") for value in vars(torch).values() if isinstance(value, torch.dtype)
}


def _given(case: Case) -> str:
    """Which arguments are given. One that is not given has its default, whose value cannot be observed."""
    return " ".join([str(len(case.args)), *sorted(case.kwargs)])


# ---- tensors


def layout_of(tensor: Tensor) -> str:
    """How a tensor lies in memory."""
    if tensor.layout is not torch.strided:
        return str(tensor.layout).removeprefix("torch.")
    if tensor.is_conj():
        return "conjugate view"
    if tensor.is_neg():
        return "negative view"
    if tensor.is_contiguous():
        return "offset" if tensor.storage_offset() else "contiguous"
    return _strided(tensor)


def _strided(tensor: Tensor) -> str:
    """The kind of strides of a tensor that is not contiguous."""
    counted = [(stride, size) for stride, size in zip(tensor.stride(), tensor.shape, strict=True) if size > 1]
    if any(stride == 0 for stride, _ in counted):
        return "expanded"
    reach, gaps = 1, False
    for stride, size in sorted(counted):
        if stride < reach:
            return "overlapping"
        gaps = gaps or stride > reach
        reach = stride * size
    if gaps:
        return "stepped" if min(counted)[0] > 1 else "rows with gaps"
    if tensor.dim() == 4 and tensor.is_contiguous(memory_format=torch.channels_last):
        return "channels last"
    if tensor.dim() == 5 and tensor.is_contiguous(memory_format=torch.channels_last_3d):
        return "channels last"
    return "transposed"


def size_of(tensors: Iterable[Tensor]) -> str:
    """The size class of the largest tensor; "empty" if any tensor has no elements."""
    counts = [(t.numel(), t) for t in tensors]
    if any(not count for count, _ in counts):
        return "empty"
    most, largest = max(counts, key=lambda counted: counted[0])
    if most > LARGE:
        return "over 131,072" if most > VERY_LARGE else "over 65,536"
    if most == 1:
        return "one element"
    rows = most // largest.shape[-1] if largest.dim() > 1 else 1
    return "over 1,024 rows" if rows > MANY_ROWS else "small"


def _gradient(tensors: Iterable[Tensor]) -> str:
    wanted = [t.requires_grad for t in tensors if t.is_floating_point() or t.is_complex()]
    return "none" if not any(wanted) else "all" if all(wanted) else "subset"


def _shapes(first: Tensor, others: Iterable[Tensor]) -> str:
    """Whether all tensors have the shape of the first; if not, their numbers of dimensions."""
    shape = first.shape
    if all(t.shape == shape for t in others):
        return "same"
    return f"others of {', '.join(map(str, sorted({t.dim() for t in others})))} dimensions"


def _storage(tensors: list[Tensor]) -> str:
    if len({id(t) for t in tensors}) < len(tensors):
        return "one tensor twice"
    strided = [t.untyped_storage()._cdata for t in tensors if t.layout is torch.strided]
    return "own" if len(set(strided)) == len(strided) else "shared"


# ---- flags

SMALL_NUMBERS = {-2: "-2", -1: "-1", 0: "0", 1: "1", 2: "2"}
# The level of a list is its length up to here, and the kinds of its values.
LONGEST_COUNTED = 3


def kind_of(value: Any) -> str:
    """The kind of an argument's value: the value itself if few are possible, else its sign or its type."""
    if isinstance(value, Tensor):
        return "tensor"
    if isinstance(value, bool) or value is None:
        return str(value)
    if isinstance(value, int):
        return SMALL_NUMBERS.get(value) or ("negative" if value < 0 else "positive")
    if isinstance(value, float):
        return _kind_of_float(value)
    if isinstance(value, list | tuple):
        return _kind_of_sequence(value)
    if isinstance(value, dict):
        return _kind_of_sequence([*value.values()])
    if isinstance(value, str | torch.dtype | torch.layout | torch.memory_format):
        return str(value)
    return type(value).__name__


def _kind_of_float(value: float) -> str:
    if value != value or value in (float("inf"), float("-inf")):
        return str(value)
    if value in (-1.0, 0.0, 1.0):
        return str(value)
    return "negative" if value < 0 else "fraction" if value < 1 else "positive"


def _kind_of_sequence(values: list[Any] | tuple[Any, ...]) -> str:
    kinds = sorted(set(map(kind_of, values)))
    number = str(len(values)) if len(values) <= LONGEST_COUNTED else "many"
    return f"{number} of {' and '.join(kinds)}" if kinds else "none in a list"
