"""Corruptions of what a kernel takes its arguments for: ignored, truncated, read with the wrong strides or dtype."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor

from .call import FaultyCall, host, host_view, on_device
from .corruption import corruption, map_argument


@corruption
def ignores(call: FaultyCall, name: str) -> Any:
    """An argument counts as not given: as its default, or as None."""
    listed = next(a for a in call.overload._schema.arguments if a.name == name)
    return call.run({name: listed.default_value})


@corruption
def takes(call: FaultyCall, name: str, value: Any) -> Any:
    """An argument counts as this value, whatever it is."""
    return call.run({name: value})


@corruption
def truncates(call: FaultyCall, name: str) -> Any:
    """A number counts as the integer below it."""
    return call.run({name: float(math.floor(call.arguments[name]))})


@corruption
def positive(call: FaultyCall, name: str) -> Any:
    """A negative number, or one of a list, counts as its absolute value less one."""
    value = call.arguments[name]
    changed = [abs(v) - 1 if v < 0 else v for v in value] if isinstance(value, (list, tuple)) else abs(value) - 1
    return call.run({name: changed})


@corruption
def previous_number(call: FaultyCall, name: str) -> Any:
    """A number counts as that of the call before: the kernel was built for it.

    Goes with the condition near_previous.
    """
    return call.run({name: call.memory.cached.get(name, call.arguments[name])})


@corruption
def nan_as_zero(call: FaultyCall, name: str) -> Any:
    """NaN in an argument counts as zero."""
    return call.run(map_argument(call, name, lambda t: on_device(host(t).clone().nan_to_num_(0, math.inf, -math.inf))))


@corruption
def reads_as_contiguous(call: FaultyCall, name: str) -> Any:
    """An argument is read as if its elements lay one behind the other."""
    return call.run(map_argument(call, name, _misread))


@corruption
def ignores_offset(call: FaultyCall, name: str) -> Any:
    """An argument is read from the beginning of its storage."""
    return call.run(map_argument(call, name, lambda t: on_device(host_view(t, t.size(), t.stride(), 0).clone())))


@corruption
def ignores_conjugation(call: FaultyCall, name: str) -> Any:
    """A conjugate or negative view counts as what it is a view of."""

    def plain(tensor: Tensor) -> Tensor:
        values = host(tensor)
        values = values.conj() if tensor.is_conj() else values
        return on_device((torch._neg_view(values) if tensor.is_neg() else values).resolve_conj().resolve_neg().clone())

    return call.run(map_argument(call, name, plain))


@corruption
def through_float32(call: FaultyCall, name: str) -> Any:
    """Integers go through float32, which has 24 bits for them."""
    return call.run(map_argument(call, name, lambda t: _through(t, torch.float32)))


@corruption
def through_float64(call: FaultyCall, name: str) -> Any:
    """Integers go through float64, which has 53 bits for them."""
    return call.run(map_argument(call, name, lambda t: _through(t, torch.float64)))


@corruption
def through_int32(call: FaultyCall, name: str) -> Any:
    """Integers keep their lower 32 bits."""
    return call.run(map_argument(call, name, lambda t: _through(t, torch.int32)))


@corruption
def through_half(call: FaultyCall, name: str) -> Any:
    """Floating numbers go through float16."""
    return call.run(map_argument(call, name, lambda t: _through(t, torch.float16) if t.is_floating_point() else t))


@corruption
def only_first(call: FaultyCall, name: str, elements: int) -> Any:
    """Along its longest dimension only so many elements of an argument count; the others are read as zero."""

    def shortened(tensor: Tensor) -> Tensor:
        copy = host(tensor).clone()
        longest = max(range(copy.dim()), key=copy.size)
        copy.narrow(longest, elements, max(0, copy.size(longest) - elements)).zero_()
        return on_device(copy)

    return call.run(map_argument(call, name, lambda t: shortened(t) if max(t.size(), default=0) > elements else t))


@corruption
def ignores_last(call: FaultyCall, name: str) -> Any:
    """The last element of an argument counts as zero."""

    def without(tensor: Tensor) -> Tensor:
        copy = host(tensor).clone()
        if copy.numel():
            copy[tuple(size - 1 for size in copy.shape)] = 0
        return on_device(copy)

    return call.run(map_argument(call, name, without))


@corruption
def clamps(call: FaultyCall, name: str, bounding: str) -> Any:
    """Indices out of range count as the last one: nothing is raised."""
    smallest = min((min(t.size(), default=1) for t in call.tensors(bounding)), default=1)
    return call.run(map_argument(call, name, lambda t: on_device(host(t).clamp(0, max(0, smallest - 1)))))


def _misread(tensor: Tensor) -> Tensor:
    """The values that contiguous strides find in the tensor's storage; what lies behind its end counts as zero."""
    copy = torch.zeros(tensor.size(), dtype=tensor.dtype, device="cpu")
    storage = tensor.untyped_storage().nbytes() // tensor.element_size() - tensor.storage_offset()
    there = min(storage, tensor.numel())
    copy.view(-1)[:there] = host_view(tensor, (there,), (1,), int(tensor.storage_offset()))
    return on_device(copy)


def _through(tensor: Tensor, dtype: torch.dtype) -> Tensor:
    return on_device(host(tensor).to(dtype).to(tensor.dtype))
