"""One call of a faulty overload, and device memory as host tensors.

A fault changes values on the host and calls no operator of the device. So an observer of the device sees only the
calls that the program makes.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

Kernel = Callable[..., Any]


@dataclass
class FaultMemory:
    """The state of a fault between calls."""

    calls: int = 0
    previous: dict[str, Any] = field(default_factory=dict)
    kept: list[Any] = field(default_factory=list)
    cached: dict[Any, Any] = field(default_factory=dict)


@dataclass
class FaultyCall:
    """A call: its arguments by the names of the schema, with defaults, and the right kernel.

    Attributes:
        overload: the OpOverload.
        arguments: by name.
        kernel: the right kernel, called like the overload.
        memory: of the fault.
    """

    overload: Any
    arguments: dict[str, Any]
    kernel: Kernel
    memory: FaultMemory

    def run(self, changed: Mapping[str, Any] | None = None) -> Any:
        """The result of the right kernel, with some arguments replaced."""
        arguments = {**self.arguments, **(changed or {})}
        keywords = {a.name for a in self.overload._schema.arguments if a.kwarg_only}
        positional = [value for name, value in arguments.items() if name not in keywords]
        return self.kernel(*positional, **{name: arguments[name] for name in keywords})

    def tensors(self, name: str = "any") -> list[Tensor]:
        """The strided mps tensors in one argument, or in all of them."""
        values = self.arguments.values() if name == "any" else [self.arguments.get(name)]
        return list(device_tensors(values))

    @property
    def written(self) -> list[str]:
        """The arguments that the schema says are written."""
        return [a.name for a in self.overload._schema.arguments if a.alias_info is not None and a.alias_info.is_write]

    def results(self, returned: Any) -> list[Tensor]:
        """The returned tensors, or the written ones if the call returns none."""
        given = list(device_tensors([returned]))
        return given or [tensor for name in self.written for tensor in self.tensors(name)]


def device_tensors(values: Any) -> Iterator[Tensor]:
    """The strided mps tensors among these values, those in lists included."""
    for value in values:
        if isinstance(value, Tensor):
            if value.device.type == "mps" and value.layout is torch.strided:
                yield value
        elif isinstance(value, (list, tuple)):
            yield from device_tensors(value)


def map_tensors(change: Callable[[Tensor], Tensor], value: Any) -> Any:
    """A value, or a list of values, with `change` applied to its mps tensors."""
    if isinstance(value, Tensor):
        return change(value) if value.device.type == "mps" and value.layout is torch.strided else value
    if isinstance(value, (list, tuple)):
        return type(value)(map_tensors(change, item) for item in value)
    return value


def host(tensor: Tensor) -> Tensor:
    """A host tensor that shares the memory of a device tensor, which must outlive it."""
    return host_view(tensor, tensor.size(), tensor.stride(), int(tensor.storage_offset()))


def host_view(tensor: Tensor, size: Any, stride: Any, offset: int) -> Tensor:
    """Another view of the storage of a device tensor, on the host."""
    view = torch.empty(0, dtype=tensor.dtype, device="cpu")
    storage = tensor.untyped_storage()
    if storage.nbytes() == 0:
        return torch.empty_strided(tuple(size), tuple(stride), dtype=tensor.dtype, device="cpu")
    buffer = (ctypes.c_char * storage.nbytes()).from_address(storage.data_ptr())
    view.set_(torch.frombuffer(buffer, dtype=torch.uint8).untyped_storage(), offset, tuple(size), tuple(stride))
    if tensor.is_conj():
        view = torch._conj(view)
    return torch._neg_view(view) if tensor.is_neg() else view


def on_device(values: Tensor) -> Tensor:
    """A new device tensor with the values and strides of a host tensor."""
    values = values.detach().resolve_conj().resolve_neg()
    if torch._debug_has_internal_overlap(values) == 1:  # an element has several indices
        values = values.contiguous()
    tensor = torch.empty_strided(values.size(), values.stride(), dtype=values.dtype, device="mps")
    host(tensor).copy_(values)
    return tensor


def share_memory(left: Tensor, right: Tensor) -> bool:
    """Whether two device tensors share a storage."""
    return min(left.numel(), right.numel()) > 0 and left.untyped_storage()._cdata == right.untyped_storage()._cdata
