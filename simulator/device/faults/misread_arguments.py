"""Corruptions that misread arguments: ignored, truncated, read with the wrong strides or dtype."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor

from .call import FaultyCall, host, host_view, on_device
from .corruption import corruption, map_argument


@corruption
def ignores(call: FaultyCall, name: str) -> Any:
    """Use the default of an argument, or None, instead of its value."""
    listed = next(a for a in call.overload._schema.arguments if a.name == name)
    return call.run({name: listed.default_value})


@corruption
def takes(call: FaultyCall, name: str, value: Any) -> Any:
    """Use this value for an argument."""
    return call.run({name: value})


@corruption
def truncates(call: FaultyCall, name: str) -> Any:
    """Round a number down to an integer."""
    return call.run({name: float(math.floor(call.arguments[name]))})


@corruption
def positive(call: FaultyCall, name: str) -> Any:
    """Use the absolute value less one for a negative number, or for those in a list."""
    value = call.arguments[name]
    changed = [abs(v) - 1 if v < 0 else v for v in value] if isinstance(value, (list, tuple)) else abs(value) - 1
    return call.run({name: changed})


@corruption
def previous_number(call: FaultyCall, name: str) -> Any:
    """Use the number of the previous call, as if the kernel had been built for that one.

    Needs the condition near_previous.
    """
    return call.run({name: call.memory.cached.get(name, call.arguments[name])})


@corruption
def nan_as_zero(call: FaultyCall, name: str) -> Any:
    """Read NaN in an argument as zero."""
    return call.run(map_argument(call, name, lambda t: on_device(host(t).clone().nan_to_num_(0, math.inf, -math.inf))))


@corruption
def reads_as_contiguous(call: FaultyCall, name: str) -> Any:
    """Read an argument as if it were contiguous."""
    return call.run(map_argument(call, name, _misread))


@corruption
def ignores_offset(call: FaultyCall, name: str) -> Any:
    """Read an argument from the beginning of its storage."""
    return call.run(map_argument(call, name, lambda t: on_device(host_view(t, t.size(), t.stride(), 0).clone())))


@corruption
def ignores_conjugation(call: FaultyCall, name: str) -> Any:
    """Read a conjugate or negative view as its base."""

    def plain(tensor: Tensor) -> Tensor:
        values = host(tensor)
        values = values.conj() if tensor.is_conj() else values
        return on_device((torch._neg_view(values) if tensor.is_neg() else values).resolve_conj().resolve_neg().clone())

    return call.run(map_argument(call, name, plain))


@corruption
def through_float32(call: FaultyCall, name: str) -> Any:
    """Convert integers to float32 and back: it has 24 bits for them."""
    return call.run(map_argument(call, name, lambda t: _through(t, torch.float32)))


@corruption
def through_float64(call: FaultyCall, name: str) -> Any:
    """Convert integers to float64 and back: it has 53 bits for them."""
    return call.run(map_argument(call, name, lambda t: _through(t, torch.float64)))


@corruption
def through_int32(call: FaultyCall, name: str) -> Any:
    """Keep the lower 32 bits of integers."""
    return call.run(map_argument(call, name, lambda t: _through(t, torch.int32)))


@corruption
def through_half(call: FaultyCall, name: str) -> Any:
    """Convert floating-point numbers to float16 and back."""
    return call.run(map_argument(call, name, lambda t: _through(t, torch.float16) if t.is_floating_point() else t))


@corruption
def only_first(call: FaultyCall, name: str, elements: int) -> Any:
    """Read only the first elements of an argument along its longest dimension, and zeros after them."""

    def shortened(tensor: Tensor) -> Tensor:
        copy = host(tensor).clone()
        longest = max(range(copy.dim()), key=copy.size)
        copy.narrow(longest, elements, max(0, copy.size(longest) - elements)).zero_()
        return on_device(copy)

    return call.run(map_argument(call, name, lambda t: shortened(t) if max(t.size(), default=0) > elements else t))


@corruption
def ignores_last(call: FaultyCall, name: str) -> Any:
    """Read the last element of an argument as zero."""

    def without(tensor: Tensor) -> Tensor:
        copy = host(tensor).clone()
        if copy.numel():
            copy[tuple(size - 1 for size in copy.shape)] = 0
        return on_device(copy)

    return call.run(map_argument(call, name, without))


@corruption
def clamps(call: FaultyCall, name: str, bounding: str) -> Any:
    """Clamp indices that are out of range, instead of raising."""
    smallest = min((min(t.size(), default=1) for t in call.tensors(bounding)), default=1)
    return call.run(map_argument(call, name, lambda t: on_device(host(t).clamp(0, max(0, smallest - 1)))))


def _misread(tensor: Tensor) -> Tensor:
    """The values that contiguous strides read from the storage of the tensor; zero beyond its end."""
    copy = torch.zeros(tensor.size(), dtype=tensor.dtype, device="cpu")
    storage = tensor.untyped_storage().nbytes() // tensor.element_size() - tensor.storage_offset()
    there = min(storage, tensor.numel())
    copy.view(-1)[:there] = host_view(tensor, (there,), (1,), int(tensor.storage_offset()))
    return on_device(copy)


def _through(tensor: Tensor, dtype: torch.dtype) -> Tensor:
    return on_device(host(tensor).to(dtype).to(tensor.dtype))
