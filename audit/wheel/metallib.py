"""Lists the functions of the Metal libraries that are embedded in PyTorch's library, without their code.

A library (magic `MTLB`) begins with a header that says where its function list lies; each function is a group of
tagged fields: a four-letter tag, a 16-bit size and as many bytes, up to the tag `ENDT`.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass

from .byte_ranges import ByteRanges
from .errors import MalformedBinaryError
from .macho import Section

MAGIC = b"MTLB"
HEADER_SIZE = 88

_END = b"ENDT"
_KERNEL = 2

# Real lists have about 3 MB; the bound keeps a damaged size field from asking for gigabytes.
MOST_LIST_BYTES = 256 << 20


@dataclass(frozen=True)
class MetalLibrary:
    """One embedded library: the section that holds it and the names of its functions, in its order."""

    section: str
    functions: tuple[str, ...]


def is_metal_section(section: Section) -> bool:
    """Whether a section holds a Metal library, by the name that PyTorch's build gives it."""
    return section.segment == "__TEXT" and section.name.startswith("metal_") and section.size >= HEADER_SIZE


def read_library(section: Section, source: ByteRanges) -> MetalLibrary:
    """The library in a section. Raises MalformedBinaryError when the section holds none or its list is damaged."""
    header = bytes(source.take(section.offset, HEADER_SIZE))
    if header[:4] != MAGIC:
        raise MalformedBinaryError(f"section {section.name} holds no Metal library")
    list_offset, list_size = struct.unpack_from("<QQ", header, 24)
    if list_offset < HEADER_SIZE or list_offset + list_size > section.size or list_size > MOST_LIST_BYTES:
        raise MalformedBinaryError(f"the function list of section {section.name} lies outside it")
    # The count in front of the list is not included in its size.
    data = bytes(source.take(section.offset + list_offset, min(list_size + 4, section.size - list_offset)))
    return MetalLibrary(section.name, tuple(_function_names(data, section.name)))


def _function_names(data: bytes, section: str) -> Iterator[str]:
    try:
        (count,) = struct.unpack_from("<I", data, 0)
        position = 4
        for _ in range(count):
            (size,) = struct.unpack_from("<I", data, position)
            name = _name(data, position + 4, position + size)
            if name is None:
                raise MalformedBinaryError(f"a function of section {section} has no name")
            yield name
            position += size
    except struct.error:
        raise MalformedBinaryError(f"the function list of section {section} ends too early") from None


def _name(data: bytes, start: int, end: int) -> str | None:
    position = start
    while position < end:
        tag = data[position : position + 4]
        if tag == _END:
            return None
        (size,) = struct.unpack_from("<H", data, position + 4)
        value = data[position + 6 : position + 6 + size]
        if tag == b"NAME":
            return value.rstrip(b"\0").decode("utf-8", "replace")
        position += 6 + size
    return None
