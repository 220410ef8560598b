"""Converts Python values to bytes: numbers, vectors, arrays and structs of AIR types."""

from __future__ import annotations

import re
import struct
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ..errors import KernelArgumentError
from .signature import StructField

Pointers = Mapping[int, int]
"""Addresses by the `id` of their tensor."""

_FORMATS = {
    **{"float": "f", "half": "e", "bool": "?", "char": "b", "uchar": "B", "short": "h", "ushort": "H"},
    **{"int": "i", "uint": "I", "long": "q", "ulong": "Q", "size_t": "Q", "int8_t": "b", "uint8_t": "B"},
    **{"int16_t": "h", "uint16_t": "H", "int32_t": "i", "uint32_t": "I", "int64_t": "q", "uint64_t": "Q"},
}
_WHOLE = frozenset("bBhHiIqQ?")
_VECTOR = re.compile(r"(packed_)?([a-z_]+(?:\d+_t)?)([234])")


def _layout(type_name: str) -> tuple[str, int, int]:
    """The element type, the number of elements, and the number in memory: uint3 has 3 and takes 4."""
    if type_name in _FORMATS or type_name == "bfloat":
        return type_name, 1, 1
    match = _VECTOR.fullmatch(type_name)
    if match and (match[2] in _FORMATS or match[2] == "bfloat"):
        width = int(match[3])
        return match[2], width, 4 if width == 3 and not match[1] else width
    raise KernelArgumentError(f"there is no way to write a {type_name}: pass a tensor or bytes")


def _flattened(value: object) -> Iterable[Any]:
    if isinstance(value, complex):
        yield value.real
        yield value.imag
    elif isinstance(value, Sequence) and not isinstance(value, str | bytes):
        for element in value:
            yield from _flattened(element)
    else:
        yield value


def _bfloat(value: float) -> bytes:
    """The nearest bfloat, ties to even."""
    (bits,) = struct.unpack("<I", _scalar("f", value))
    if value != value:
        return b"\xc0\x7f"
    return struct.pack("<H", (bits + 0x7FFF + (bits >> 16 & 1)) >> 16)


def _scalar(form: str, value: Any) -> bytes:
    if form in _WHOLE:
        if isinstance(value, float) and not value.is_integer():
            raise KernelArgumentError(f"{value!r} is not an integer")
        value = bool(value) if form == "?" else int(value)
    try:
        return struct.pack(f"<{form}", value)
    except OverflowError:  # a float that is too large rounds to infinity
        return struct.pack(f"<{form}", float("inf") if value > 0 else float("-inf"))
    except (struct.error, TypeError) as error:
        raise KernelArgumentError(f"{value!r} does not fit: {error}") from None


def pack_values(type_name: str, value: object) -> bytes:
    """A number, or a list of numbers or vectors, as elements of a type."""
    scalar, width, room = _layout(type_name)
    numbers = list(_flattened(value))
    pack = _bfloat if scalar == "bfloat" else lambda number: _scalar(_FORMATS[scalar], number)
    if len(numbers) % width:
        raise KernelArgumentError(f"{len(numbers)} numbers do not make up whole {type_name}s")
    data = [pack(number) for number in numbers]
    if room == width:
        return b"".join(data)
    padding = bytes(len(data[0])) if data else b""
    return b"".join(b"".join(data[i : i + width]) + padding for i in range(0, len(data), width))


def pack_struct(fields: Sequence[StructField], values: Mapping[str, object], size: int, pointers: Pointers) -> bytes:
    """A struct from its members by name; missing members are zero.

    Raises:
        KernelArgumentError: there is no such member, or a value does not fit its member.
    """
    by_name = {field.name: field for field in fields}
    unknown = [name for name in values if name not in by_name]
    if unknown:
        raise KernelArgumentError(f"has no member {', '.join(unknown)}: its members are {', '.join(by_name)}")
    data = bytearray(size)
    for name, value in values.items():
        field = by_name[name]
        try:
            member = _member(field, value, pointers)
        except KernelArgumentError as error:
            raise KernelArgumentError(f"member {name}: {error}") from None
        data[field.offset : field.offset + len(member)] = member
    return bytes(data)


def _address(pointee: object, pointers: Pointers) -> int:
    """The address of a tensor; None is a null pointer."""
    if pointee is not None and id(pointee) not in pointers:
        raise KernelArgumentError(f"a pointer takes a tensor or None, not {pointee!r}")
    return pointers.get(id(pointee), 0)


def _member(field: StructField, value: object, pointers: Pointers) -> bytes:
    room = field.size * max(field.array_length, 1)
    if field.is_pointer:
        pointees = value if isinstance(value, list | tuple) else [value]
        member = struct.pack(f"<{len(pointees)}Q", *(_address(pointee, pointers) for pointee in pointees))
    elif isinstance(value, bytes):
        member = value
    elif field.fields and isinstance(value, Mapping):
        member = pack_struct(field.fields, value, field.size, pointers)
    elif len(field.fields) == 1:  # a wrapper of one member, such as metal::array
        member = _member(field.fields[0], value, pointers)
    elif field.fields:
        raise KernelArgumentError(f"a {field.type_name} takes a dict of its members, not {value!r}")
    else:
        member = pack_values(field.type_name, value)
    if len(member) > room:
        raise KernelArgumentError(f"{len(member)} bytes do not fit its {room}")
    return member
