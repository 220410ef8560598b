"""Builds and runs graphs of the stand-in for MPSGraph, with torch's tensors as inputs and results."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import torch

from .objc_messages import Argument, Ref, class_named, dictionary, frameworks, items_of, made, numbers_of, send

_FLOAT, _COMPLEX, _SIGNED, _OTHER = 0x10000000, 0x01000000, 0x20000000, 0x80000000
DATA_TYPES = {
    torch.float32: _FLOAT | 32,
    torch.float16: _FLOAT | 16,
    torch.bfloat16: _OTHER | _FLOAT | 16,
    torch.complex64: _FLOAT | _COMPLEX | 64,
    torch.int8: _SIGNED | 8,
    torch.int16: _SIGNED | 16,
    torch.int32: _SIGNED | 32,
    torch.int64: _SIGNED | 64,
    torch.uint8: 8,
    torch.bool: _OTHER | 8,
}
"""MPSDataType of each dtype."""
_DTYPES = {number: dtype for dtype, number in DATA_TYPES.items()}


def described(name: str, **properties: int) -> Ref:
    """A descriptor with these properties."""
    descriptor = made(name, "init")
    for key, value in properties.items():
        send(descriptor, f"set{key[0].upper()}{key[1:]}:", value)
    return descriptor


def buffer_of(tensor: torch.Tensor) -> Ref:
    """An MTLBuffer over the memory of a contiguous tensor, which has to outlive it."""
    device = Ref(frameworks().MTLCreateSystemDefaultDevice())
    size = max(tensor.nbytes, 1)
    selector = "newBufferWithBytesNoCopy:length:options:deallocator:"
    return Ref(send(device, selector, Ref(tensor.data_ptr()), size, 0, None))


def data_of(tensor: torch.Tensor) -> Ref:
    """An MPSGraphTensorData over the memory of a contiguous tensor."""
    assert tensor.is_contiguous()
    shape = list(tensor.shape)
    number = DATA_TYPES[tensor.dtype]
    return made("MPSGraphTensorData", "initWithMTLBuffer:shape:dataType:", buffer_of(tensor), shape, number)


def dtype_of(tensor: Ref) -> torch.dtype:
    """The dtype of a graph's tensor."""
    return _DTYPES[send(tensor, "dataType") & 0xFFFFFFFF]


def shape_of(tensor: Ref) -> list[int] | None:
    """The shape of a graph's tensor; None where it is unknown."""
    shape = send(tensor, "shape")
    return numbers_of(Ref(shape)) if shape else None


@dataclass
class Graph:
    """A graph, and what its placeholders are fed with."""

    ref: Ref = field(default_factory=lambda: Ref(send(class_named("MPSGraph"), "new")))
    fed: list[tuple[Ref, torch.Tensor]] = field(default_factory=list)

    def feed(self, tensor: torch.Tensor, shape: Sequence[int] | None = None) -> Ref:
        """A placeholder of the tensor's shape, or of another one, that is fed with it."""
        declared = list(tensor.shape if shape is None else shape)
        number = DATA_TYPES[tensor.dtype]
        node = self("placeholderWithShape:dataType:name:", declared, number, None)
        self.fed.append((node, tensor.contiguous()))
        return node

    def __call__(self, selector: str, *arguments: Argument) -> Ref:
        """The tensor of an operation."""
        return Ref(send(self.ref, selector, *arguments))

    def several(self, selector: str, *arguments: Argument) -> list[Ref]:
        """The tensors of an operation with several."""
        return items_of(self(selector, *arguments))

    def run(self, *targets: Ref, places: Sequence[torch.Tensor] | None = None) -> list[torch.Tensor]:
        """The values of tensors. They have their own places unless some are given."""
        if places is None:
            places = [torch.empty(shape_of(target) or [], dtype=dtype_of(target)) for target in targets]
        feeds = dictionary([(node, data_of(tensor)) for node, tensor in self.fed])
        results = dictionary([(target, data_of(place)) for target, place in zip(targets, places, strict=True)])
        selector = "encodeToCommandBuffer:feeds:targetOperations:resultsDictionary:executionDescriptor:"
        send(self.ref, selector, None, feeds, None, results, None)
        return list(places)
