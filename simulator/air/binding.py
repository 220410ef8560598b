"""A launch's arguments by name made into the buffers that the kernel reads and writes."""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..metal.binding import Buffer, inline
from .errors import KernelArgumentError
from .packing import pack_struct, pack_values
from .signature import BufferArgument, KernelSignature

if TYPE_CHECKING:
    import torch

# The dtypes that a buffer of an element type may have, by the names that torch prints; a type that is not here takes
# any. Bytes are bool, char and uchar alike, as torch's own host code has them.
_BYTES = ("torch.bool", "torch.int8", "torch.uint8")
_FLOAT8 = ("torch.float8_e4m3fn", "torch.float8_e5m2", "torch.float8_e4m3fnuz", "torch.float8_e5m2fnuz")
_DTYPES: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(("bool", "char"), _BYTES),
    "uchar": (*_BYTES, *_FLOAT8, "torch.float8_e8m0fnu"),
    **dict.fromkeys(("short", "ushort"), ("torch.int16", "torch.uint16")),
    **dict.fromkeys(("int", "uint"), ("torch.int32", "torch.uint32")),
    **dict.fromkeys(("long", "ulong"), ("torch.int64", "torch.uint64")),
    **{"half": ("torch.float16",), "bfloat": ("torch.bfloat16",), "float": ("torch.float32",)},
    **{"float2": ("torch.complex64", "torch.float32"), "half2": ("torch.complex32", "torch.float16")},
}


@dataclass(frozen=True)
class BoundArguments:
    """Buffers by index, and the tensors whose addresses stand in other buffers."""

    buffers: Mapping[int, Buffer]
    pointed_at: tuple[Buffer, ...]


Constants = dict[tuple[str, tuple[int, ...]], Buffer]
"""Buffers of a kernel's arguments that hold nothing but whole numbers, such as sizes and strides, by those numbers."""

_MOST_CONSTANTS = 1024
_NUMBERS = frozenset((bool, int, float, complex))


def bind(
    signature: KernelSignature, values: Mapping[str, object], constants: Constants | None = None
) -> BoundArguments:
    """The buffers of a launch. What is read-only and given again is taken from `constants`, where such are kept.

    Every argument that the kernel uses must be given; None leaves its buffer unbound. A tensor is its memory from its
    first element on; a number or a list is written as the argument's type; a dict is a struct by its members; bytes
    are taken as they are; a tensor in a struct, or a list of tensors, stands for addresses.

    Raises:
        KernelArgumentError: a name is unknown, an argument is missing, or a value does not fit.
    """
    known = {buffer.name: buffer for buffer in signature.buffers}
    unknown = [name for name in values if name not in known]
    missing = [name for name, buffer in known.items() if buffer.used and name not in values]
    if unknown or missing:
        what = f"has no argument {', '.join(unknown)}" if unknown else f"is not given {', '.join(missing)}"
        raise KernelArgumentError(f"{what}: its arguments are {', '.join(known)}")
    containers = [value for value in values.values() if not _is_plain(value)]
    pointed_at = {id(tensor): _memory(tensor) for value in containers for tensor in _pointees(value)}
    buffers = {}
    for name, value in values.items():
        if value is None:
            continue
        buffer = known[name]
        if constants is not None and type(value) is list and not buffer.writable and {*map(type, value)} == {int}:
            key = name, tuple(value)
            if key not in constants:
                if len(constants) >= _MOST_CONSTANTS:
                    constants.clear()
                constants[key] = _given(buffer, value, {})
            buffers[buffer.index] = constants[key]
            continue
        buffers[buffer.index] = _given(buffer, value, pointed_at)
    return BoundArguments(buffers, tuple(pointed_at.values()))


def _is_plain(value: object) -> bool:
    """Whether a value holds no tensors: a tensor itself, a number, a list that starts with one."""
    kind = type(value)
    return kind in _NUMBERS or _is_tensor(value) or (kind is list and type(value[0] if value else 0) in _NUMBERS)  # type: ignore[index]


def _given(argument: BufferArgument, value: object, pointed_at: Mapping[int, Buffer]) -> Buffer:
    try:
        return _buffer(argument, value, {key: each.address for key, each in pointed_at.items()})
    except KernelArgumentError as error:
        raise KernelArgumentError(f"argument {argument.name} ({argument.type_name}): {error}") from None


def _pointees(value: object, inside: bool = False) -> Iterator[torch.Tensor]:
    """The tensors inside a value, which stand for their addresses."""
    if _is_tensor(value):
        if inside:
            yield value  # type: ignore[misc]  # what torch's type is without torch
    elif isinstance(value, Mapping):
        for each in value.values():
            yield from _pointees(each, True)
    elif isinstance(value, list | tuple):
        for each in value:
            yield from _pointees(each, True)


def _is_tensor(value: object) -> bool:
    return hasattr(value, "untyped_storage")


def _buffer(argument: BufferArgument, value: object, pointers: Mapping[int, int]) -> Buffer:
    if _is_tensor(value):
        return _tensor(argument, value)  # type: ignore[arg-type]
    if isinstance(value, bytes | bytearray):
        data = bytes(value)
    elif isinstance(value, Mapping):
        if not argument.fields:
            raise KernelArgumentError("it is no struct, and takes no dict")
        data = pack_struct(argument.fields, value, argument.size, pointers)
    elif isinstance(value, list | tuple) and value and id(value[0]) in pointers:
        data = struct.pack(f"<{len(value)}Q", *(pointers[id(each)] for each in value))
    else:
        data = pack_values(argument.type_name, value)
    if argument.by_reference and len(data) < argument.size:
        raise KernelArgumentError(f"it has {len(data)} bytes, and the kernel reads {argument.size}")
    return inline(data, argument.index)


def _tensor(argument: BufferArgument, tensor: torch.Tensor) -> Buffer:
    accepted = _DTYPES.get(argument.type_name)
    if accepted and str(tensor.dtype) not in accepted:
        raise KernelArgumentError(f"a tensor of {tensor.dtype} is bound to it")
    memory = _memory(tensor)
    if argument.by_reference and memory.available < argument.size:
        raise KernelArgumentError(f"the tensor has {memory.available} bytes, and the kernel reads {argument.size}")
    return memory


def _memory(tensor: torch.Tensor) -> Buffer:
    """A tensor's memory from its first element on, and the storage around it."""
    if tensor.layout.__str__() != "torch.strided":
        raise KernelArgumentError(f"a tensor of the layout {tensor.layout} has no plain memory")
    storage = tensor.untyped_storage()
    base = storage.data_ptr()
    offset = int(tensor.storage_offset()) * tensor.element_size()
    return Buffer(base + offset, base, storage.nbytes(), tensor)
