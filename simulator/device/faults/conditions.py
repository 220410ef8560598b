"""Conditions: for which calls a fault acts. Most are about an argument, given by its name in the schema.

A condition on a list of tensors holds if it holds for one of them. "any" means all tensors of the call.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from .call import FaultyCall, host, share_memory

Condition = Callable[..., bool]
CONDITIONS: dict[str, Condition] = {}


def condition(function: Condition) -> Condition:
    """Register a condition under its word: the function's name without a trailing underscore."""
    CONDITIONS[function.__name__.rstrip("_")] = function
    return function


# ---- dtype


@condition
def dtype(call: FaultyCall, name: str, wanted: str) -> bool:
    """An argument has this dtype."""
    return any(str(t.dtype) == f"torch.{wanted}" for t in call.tensors(name))


@condition
def mixed(call: FaultyCall, left: str, right: str) -> bool:
    """Two arguments have different dtypes."""
    return any(a.dtype is not b.dtype for a in call.tensors(left) for b in call.tensors(right))


# ---- layout


@condition
def contiguous(call: FaultyCall, name: str) -> bool:
    """All tensors of an argument are contiguous and start at the beginning of their storage."""
    return all(t.is_contiguous() and t.storage_offset() == 0 for t in call.tensors(name))


@condition
def non_contiguous(call: FaultyCall, name: str) -> bool:
    """An argument is not contiguous."""
    return any(not t.is_contiguous() for t in call.tensors(name))


@condition
def transposed(call: FaultyCall, name: str) -> bool:
    """An argument is dense, with its dimensions in a different order."""
    return any(not t.is_contiguous() and is_dense(t) for t in call.tensors(name))


@condition
def stepped(call: FaultyCall, name: str) -> bool:
    """An argument has gaps between the elements of its last dimension."""
    return any(t.dim() > 0 and t.size(-1) > 1 and t.stride(-1) > 1 and not is_dense(t) for t in call.tensors(name))


@condition
def inner_strided(call: FaultyCall, name: str) -> bool:
    """An argument has gaps, but not in its last dimension."""
    return any(not t.is_contiguous() and t.stride(-1) == 1 for t in call.tensors(name) if t.dim() > 1)


@condition
def offset(call: FaultyCall, name: str) -> bool:
    """An argument starts inside its storage."""
    return any(t.storage_offset() > 0 for t in call.tensors(name))


@condition
def expanded(call: FaultyCall, name: str) -> bool:
    """An argument repeats elements by a stride of zero."""
    return any(is_expanded(t) for t in call.tensors(name))


@condition
def conjugate(call: FaultyCall, name: str) -> bool:
    """An argument is a conjugate view."""
    return any(t.is_conj() for t in call.tensors(name))


@condition
def negated(call: FaultyCall, name: str) -> bool:
    """An argument is a negative view."""
    return any(t.is_neg() for t in call.tensors(name))


@condition
def shared(call: FaultyCall, left: str, right: str) -> bool:
    """Two different tensors share a storage."""
    pairs = ((a, b) for a in call.tensors(left) for b in call.tensors(right) if a is not b)
    return any(share_memory(a, b) and view_geometry(a) != view_geometry(b) for a, b in pairs)


@condition
def same(call: FaultyCall, left: str, right: str) -> bool:
    """Two arguments are the same elements."""
    pairs = ((a, b) for a in call.tensors(left) for b in call.tensors(right))
    return any(share_memory(a, b) and view_geometry(a) == view_geometry(b) for a, b in pairs)


# ---- size


@condition
def empty(call: FaultyCall, name: str) -> bool:
    """An argument has no element."""
    return any(t.numel() == 0 for t in call.tensors(name))


@condition
def empty_dimension(call: FaultyCall, name: str, dimension: int) -> bool:
    """An argument has a size of zero in this dimension."""
    return any(t.dim() > dimension and t.size(dimension) == 0 for t in call.tensors(name))


@condition
def one_element(call: FaultyCall, name: str) -> bool:
    """An argument has one element, in one dimension or more."""
    return any(t.numel() == 1 and t.dim() > 0 for t in call.tensors(name))


@condition
def no_dimension(call: FaultyCall, name: str) -> bool:
    """An argument has no dimension."""
    return any(t.dim() == 0 for t in call.tensors(name))


@condition
def above(call: FaultyCall, name: str, elements: int) -> bool:
    """An argument has more elements than this."""
    return any(t.numel() > elements for t in call.tensors(name))


@condition
def rows_above(call: FaultyCall, name: str, rows: int) -> bool:
    """An argument has two dimensions or more, and more rows than this."""
    return any(t.dim() > 1 and t.size(0) > rows for t in call.tensors(name))


@condition
def longer(call: FaultyCall, name: str, elements: int) -> bool:
    """A dimension of an argument is longer than this."""
    return any(max(t.size(), default=0) > elements and t.numel() > 0 for t in call.tensors(name))


@condition
def dimensions(call: FaultyCall, name: str, least: int) -> bool:
    """An argument has at least this many dimensions."""
    return any(t.dim() >= least for t in call.tensors(name))


# ---- values


@condition
def nan(call: FaultyCall, name: str) -> bool:
    """An argument has a NaN."""
    return any(bool(values.isnan().any()) for values in _floats(call, name))


@condition
def infinite(call: FaultyCall, name: str) -> bool:
    """An argument has an infinity."""
    return any(bool(values.isinf().any()) for values in _floats(call, name))


@condition
def negative_zero(call: FaultyCall, name: str) -> bool:
    """An argument has a negative zero."""
    reals = (v for v in _floats(call, name) if not v.is_complex())
    return any(bool((values.signbit() & (values == 0)).any()) for values in reals)


@condition
def near_zero(call: FaultyCall, name: str, bound: float) -> bool:
    """An argument has an element that is not zero and smaller than the bound."""
    return any(bool(((v.abs() < bound) & (v != 0)).any()) for v in _floats(call, name))


@condition
def large(call: FaultyCall, name: str, bound: float) -> bool:
    """An argument has a finite element greater than the bound."""
    return any(bool(((v.abs() > bound) & v.isfinite()).any()) for v in _floats(call, name))


@condition
def far_mean(call: FaultyCall, name: str) -> bool:
    """The mean of an argument is a hundred times its deviation or more."""
    many = (v for v in _floats(call, name) if v.numel() > 1 and not v.is_complex())
    return any(bool(v.double().mean().abs() > 100 * v.double().std() > 0) for v in many)


@condition
def beyond(call: FaultyCall, name: str, bound: int) -> bool:
    """An integer argument has an element whose magnitude exceeds the bound."""
    return any(bool(((v > bound) | (v < -bound)).any()) for v in _integers(call, name))


@condition
def extreme(call: FaultyCall, name: str) -> bool:
    """An integer argument has the largest value of its dtype or, if that is negative, the smallest."""

    def ends(values: Tensor) -> bool:
        limits = torch.iinfo(values.dtype)
        return bool(((values == limits.max) | ((values == limits.min) & (limits.min < 0))).any())

    return any(ends(values) for values in _integers(call, name))


# ---- arguments that are not tensors


@condition
def is_(call: FaultyCall, name: str, value: object) -> bool:
    """An argument has this value."""
    given = call.arguments.get(name)
    return type(given) is type(value) and given == value


@condition
def given(call: FaultyCall, name: str) -> bool:
    """An optional argument is given."""
    return call.arguments.get(name) is not None


@condition
def omitted(call: FaultyCall, name: str) -> bool:
    """An optional argument is not given."""
    return call.arguments.get(name) is None


@condition
def negative(call: FaultyCall, name: str) -> bool:
    """A number, or one of a list, is negative."""
    value = call.arguments.get(name)
    numbers = value if isinstance(value, (list, tuple)) else [value]
    return any(isinstance(v, (int, float)) and v < 0 for v in numbers)


@condition
def fractional(call: FaultyCall, name: str) -> bool:
    """A number is not an integer."""
    value = call.arguments.get(name)
    return isinstance(value, float) and not value.is_integer()


@condition
def lacks(call: FaultyCall, name: str, position: int) -> bool:
    """A list of flags has False at this position."""
    flags = call.arguments.get(name)
    return isinstance(flags, (list, tuple)) and len(flags) > position and flags[position] is False


@condition
def out_of_range(call: FaultyCall, name: str, bounding: str) -> bool:
    """An index is beyond all sizes of another argument."""
    largest = max((max(t.size(), default=0) for t in call.tensors(bounding)), default=0)
    return any(bool(((v >= largest) | (v < -largest)).any()) for v in _integers(call, name))


@condition
def follows_gradients(call: FaultyCall, name: str) -> bool:
    """An argument requires a gradient."""
    return any(t.requires_grad for t in call.tensors(name))


@condition
def without_gradients(call: FaultyCall) -> bool:
    """No argument requires a gradient."""
    return not any(t.requires_grad for t in call.tensors())


# ---- previous calls


@condition
def every(call: FaultyCall, calls: int) -> bool:
    """Every n-th call of the overload."""
    return call.memory.calls % calls == 0


@condition
def near_previous(call: FaultyCall, name: str) -> bool:
    """A number differs from that of the previous call by less than a hundredth."""
    value = call.arguments.get(name)
    before = call.memory.previous.get(name)
    call.memory.previous[name] = call.memory.cached[name] = value
    if before is not None:
        call.memory.cached[name] = before
    if not isinstance(value, (int, float)) or not isinstance(before, (int, float)):
        return False
    return value != before and abs(value - before) < abs(before) / 100


@condition
def repeated(call: FaultyCall) -> bool:
    """The sizes and dtypes of all tensors are those of the previous call."""
    shapes = [(t.size(), t.dtype) for t in call.tensors()]
    before = call.memory.previous.get("shapes")
    call.memory.previous["shapes"] = shapes
    return shapes == before


@condition
def other_thread(call: FaultyCall) -> bool:
    """The previous call came from another thread."""
    before = call.memory.previous.get("thread")
    call.memory.previous["thread"] = threading.get_ident()
    return before is not None and before != threading.get_ident()


# ---- shared by conditions


def is_dense(tensor: Tensor) -> bool:
    """Whether the elements fill a range of memory, each once, in any order of dimensions."""
    sizes = sorted(((stride, size) for stride, size in zip(tensor.stride(), tensor.size(), strict=True) if size > 1))
    expected = 1
    for stride, size in sizes:
        if stride != expected:
            return False
        expected *= size
    return True


def is_expanded(tensor: Tensor) -> bool:
    """Whether a dimension repeats its elements."""
    return any(size > 1 and stride == 0 for stride, size in zip(tensor.stride(), tensor.size(), strict=True))


def view_geometry(tensor: Tensor) -> tuple[Any, ...]:
    """The offset, sizes and strides that determine the elements of a tensor in its storage."""
    return tensor.storage_offset(), tuple(tensor.size()), tuple(tensor.stride()), tensor.dtype


def _floats(call: FaultyCall, name: str) -> list[Tensor]:
    return [host(t) for t in call.tensors(name) if t.is_floating_point() or t.is_complex()]


def _integers(call: FaultyCall, name: str) -> list[Tensor]:
    kinds = (torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64)
    return [host(t) for t in call.tensors(name) if t.dtype in kinds]
