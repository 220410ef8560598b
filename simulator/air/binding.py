"""Binds the named arguments of a launch to buffers."""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..errors import KernelArgumentError
from ..metal.binding import Buffer, inline
from .packing import pack_struct, pack_values
from .signature import BufferArgument, KernelSignature

if TYPE_CHECKING:
    import torch

# The accepted dtypes by element type; other types accept any dtype. bool, char and uchar are interchangeable, as in
# torch's host code.
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
    """Buffers by index, and the tensors whose addresses are in other buffers."""

    buffers: Mapping[int, Buffer]
    pointed_at: tuple[Buffer, ...]


Constants = dict[tuple[str, tuple[int, ...]], Buffer]
"""Cached buffers of integer arguments, such as sizes and strides, by name and values."""

_MOST_CONSTANTS = 1024
_NUMBERS = frozenset((bool, int, float, complex))


def bind(
    signature: KernelSignature, values: Mapping[str, object], constants: Constants | None = None
) -> BoundArguments:
    """The buffers of a launch. Repeated read-only lists of integers are taken from `constants`.

    Every argument that the kernel uses is required; None leaves its buffer unbound. A tensor is its memory from the
    first element on. A number or a list is converted to the argument's type, and a dict to a struct. Bytes are passed
    unchanged. A tensor in a struct, or a list of tensors, is passed by address.

    Raises:
        KernelArgumentError: a name is unknown, an argument is missing, or a value does not fit.
    """
    arguments = {buffer.name: buffer for buffer in signature.buffers}
    unknown = [name for name in values if name not in arguments]
    missing = [name for name, buffer in arguments.items() if buffer.used and name not in values]
    if unknown or missing:
        what = f"has no argument {', '.join(unknown)}" if unknown else f"is not given {', '.join(missing)}"
        raise KernelArgumentError(f"{what}: its arguments are {', '.join(arguments)}")
    containers = [value for value in values.values() if not _is_plain(value)]
    pointed_at = {id(tensor): _memory(tensor) for value in containers for tensor in _pointees(value)}
    buffers = {}
    for name, value in values.items():
        if value is None:
            continue
        buffer = arguments[name]
        if constants is not None and type(value) is list and not buffer.writable and {*map(type, value)} == {int}:
            key = name, tuple(value)
            if key not in constants:
                if len(constants) >= _MOST_CONSTANTS:
                    constants.clear()
                constants[key] = _bound(buffer, value, {})
            buffers[buffer.index] = constants[key]
            continue
        buffers[buffer.index] = _bound(buffer, value, pointed_at)
    return BoundArguments(buffers, tuple(pointed_at.values()))


def _is_plain(value: object) -> bool:
    """Whether a value contains no tensors: a tensor, a number, or a list of numbers."""
    kind = type(value)
    return kind in _NUMBERS or _is_tensor(value) or (kind is list and type(value[0] if value else 0) in _NUMBERS)  # type: ignore[index]


def _bound(argument: BufferArgument, value: object, pointed_at: Mapping[int, Buffer]) -> Buffer:
    try:
        return _buffer(argument, value, {key: buffer.address for key, buffer in pointed_at.items()})
    except KernelArgumentError as error:
        raise KernelArgumentError(f"argument {argument.name} ({argument.type_name}): {error}") from None


def _pointees(value: object, inside: bool = False) -> Iterator[torch.Tensor]:
    """The tensors inside a value, which are passed by address."""
    if _is_tensor(value):
        if inside:
            yield value  # type: ignore[misc]  # torch may be missing
    elif isinstance(value, Mapping):
        for member in value.values():
            yield from _pointees(member, True)
    elif isinstance(value, list | tuple):
        for element in value:
            yield from _pointees(element, True)


def _is_tensor(value: object) -> bool:
    return hasattr(value, "untyped_storage")


def _buffer(argument: BufferArgument, value: object, pointers: Mapping[int, int]) -> Buffer:
    if _is_tensor(value):
        return _tensor(argument, value)  # type: ignore[arg-type]
    if isinstance(value, bytes | bytearray):
        data = bytes(value)
    elif isinstance(value, Mapping):
        if not argument.fields:
            raise KernelArgumentError("it is not a struct, and takes no dict")
        data = pack_struct(argument.fields, value, argument.size, pointers)
    elif isinstance(value, list | tuple) and value and id(value[0]) in pointers:
        data = struct.pack(f"<{len(value)}Q", *(pointers[id(tensor)] for tensor in value))
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
    """A tensor's memory from the first element on, inside its storage."""
    if tensor.layout.__str__() != "torch.strided":
        raise KernelArgumentError(f"a tensor of the layout {tensor.layout} has no plain memory")
    storage = tensor.untyped_storage()
    base = storage.data_ptr()
    offset = int(tensor.storage_offset()) * tensor.element_size()
    return Buffer(base + offset, base, storage.nbytes(), tensor)
