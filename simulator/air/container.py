"""Reads `.metallib` files, the containers of compiled Metal kernels.

A library begins with a header of 88 bytes with the positions of its four parts: the list of functions, their public and
their private metadata, and the bitcode, a module for each function. Each function of the list is a record of tagged
fields (a four-letter tag, a 16-bit size, the bytes) that ends with the tag `ENDT`. Numbers are little endian, and
offsets count from the start of the library.

The file is not trusted: every count, size and offset is checked. `read_header` and `read_functions` take bytes, so a
library may come from a stream.
"""

from __future__ import annotations

import hashlib
import mmap
import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from ..errors import AirError, MalformedLibraryError, OtherPlatformError

MAGIC = b"MTLB"
HEADER_SIZE = 88

# The only kind of function in PyTorch's libraries; vertex functions are 0, fragment functions 1.
KERNEL = 2

# The lists of torch 2.15 have 3 MB; the limit stops damaged sizes from allocating gigabytes.
MOST_LIST_BYTES = 256 << 20

_HEADER = struct.Struct("<4sHHHBBHHQ8Q")
_MACOS = 0x8001
_COUNT_BYTES = 4
_END, _NAME = b"ENDT", b"NAME"
_TAG = struct.Struct("<4sH")
_RECORD_LENGTH = struct.Struct("<I")
# The required fields of a record and their layouts, apart from NAME, a string that ends with NUL.
_FIELDS: Mapping[bytes, struct.Struct] = {
    b"TYPE": struct.Struct("<B"),
    b"HASH": struct.Struct("<32s"),
    b"MDSZ": struct.Struct("<Q"),
    b"OFFT": struct.Struct("<3Q"),
    b"VERS": struct.Struct("<4H"),
}


class Version(NamedTuple):
    """A version of the container, of macOS, of AIR or of the Metal language, such as 3.1."""

    major: int
    minor: int

    def __str__(self) -> str:
        return f"{self.major}.{self.minor}"


class ByteSpan(NamedTuple):
    """The offset and the size of a part of the library."""

    offset: int
    size: int

    @property
    def end(self) -> int:
        """The end of the part."""
        return self.offset + self.size


@dataclass(frozen=True)
class LibraryHeader:
    """The header. `functions` includes the count in front of the list."""

    container: Version
    macos: Version
    size: int
    functions: ByteSpan
    public_metadata: ByteSpan
    private_metadata: ByteSpan
    bitcode: ByteSpan


class LibraryFunction(NamedTuple):
    """One function of a library. `sha256` is its module's, in hex; `offset` counts from the start of the bitcode."""

    name: str
    kind: int
    sha256: str
    size: int
    offset: int
    air: Version
    metal: Version


def read_header(data: bytes | memoryview, available: int) -> LibraryHeader:
    """The header in the first bytes of a library of `available` bytes.

    Raises MalformedLibraryError unless it is a library for macOS whose parts are inside it and do not overlap.
    """
    if len(data) < HEADER_SIZE or data[:4] != MAGIC:
        raise MalformedLibraryError("not a Metal library: it does not begin with MTLB and a header")
    _, platform, major, minor, _, _, macos_major, macos_minor, size, *positions = _HEADER.unpack_from(data)
    if platform != _MACOS:
        raise OtherPlatformError(f"the Metal library is not for macOS ({platform:#x})")
    if size > available:
        raise MalformedLibraryError(f"the Metal library claims to have {size} bytes, but has {available}")
    # The size of the function list does not include the count in front of it.
    functions, *others = (ByteSpan(*positions[at : at + 2]) for at in range(0, 8, 2))
    parts = [ByteSpan(functions.offset, functions.size + _COUNT_BYTES), *others]
    _check_apart(parts, size)
    if functions.size > MOST_LIST_BYTES:
        raise MalformedLibraryError(f"the function list of the Metal library claims to have {functions.size} bytes")
    return LibraryHeader(Version(major, minor), Version(macos_major, macos_minor), size, *parts)


def _check_apart(parts: list[ByteSpan], size: int) -> None:
    end = HEADER_SIZE
    for part in sorted(parts):
        if part.offset < end or part.end > size:
            raise MalformedLibraryError(
                f"bytes {part.offset} to {part.end} of the Metal library are outside of it or in two of its parts"
            )
        end = part.end


def read_functions(header: LibraryHeader, data: bytes | memoryview) -> tuple[LibraryFunction, ...]:
    """The functions of a library in its order, from the bytes of `header.functions`.

    Raises MalformedLibraryError if the list is damaged, has a name twice, or if bitcode of functions overlaps or is out
    of range.
    """
    listed = bytes(data)
    functions = tuple(
        _function(_fields(listed, position, end), number) for number, (position, end) in enumerate(_records(listed))
    )
    seen: set[str] = set()
    for function in functions:
        if function.name in seen:
            raise MalformedLibraryError(f"the Metal library has two functions {function.name}")
        seen.add(function.name)
    end = 0
    for function in sorted(functions, key=lambda function: function.offset):
        if function.offset < end or function.offset + function.size > header.bitcode.size:
            raise MalformedLibraryError(
                f"the bitcode of {function.name} is outside of the Metal library's or in another function's"
            )
        end = function.offset + function.size
    return functions


def read_names(data: bytes | memoryview) -> tuple[str, ...]:
    """The names of the functions, from the same bytes: several times as fast as `read_functions`.

    Raises MalformedLibraryError if the list is damaged; positions of bitcode are not checked.
    """
    listed = bytes(data)
    names = []
    for number, (position, end) in enumerate(_records(listed)):
        start = position + _TAG.size
        tag, size = _TAG.unpack_from(listed, position) if start <= end else (b"", 0)
        # The name is usually the first field.
        if tag == _NAME and start + size <= end:
            name = listed[start : start + size]
        else:
            name = _fields(listed, position, end).get(_NAME, b"")
        names.append(_text(name, number))
    return tuple(names)


def _records(data: bytes) -> Iterator[tuple[int, int]]:
    """The begin and the end of the fields of each function."""
    try:
        (count,) = _RECORD_LENGTH.unpack_from(data, 0)
        position = _COUNT_BYTES
        for _ in range(count):
            (length,) = _RECORD_LENGTH.unpack_from(data, position)
            end = position + length
            if end > len(data):
                raise MalformedLibraryError("the function list of the Metal library ends too early")
            yield position + _RECORD_LENGTH.size, end
            position = end
    except struct.error:
        raise MalformedLibraryError("the function list of the Metal library ends too early") from None


def _fields(data: bytes, position: int, end: int) -> dict[bytes, bytes]:
    fields: dict[bytes, bytes] = {}
    while position + _TAG.size <= end:
        tag, size = _TAG.unpack_from(data, position)
        if tag == _END:
            break
        position += _TAG.size + size
        if position > end:
            raise MalformedLibraryError("a function's field in the Metal library is longer than its record")
        fields[tag] = data[position - size : position]
    return fields


def _function(fields: Mapping[bytes, bytes], number: int) -> LibraryFunction:
    name = _text(fields.get(_NAME, b""), number)
    try:
        values = [layout.unpack(fields[tag]) for tag, layout in _FIELDS.items()]
    except (KeyError, struct.error):
        raise MalformedLibraryError(f"the record of {name} in the Metal library is incomplete") from None
    (kind,), (sha256,), (size,), (_, _, offset), versions = values
    return LibraryFunction(name, kind, sha256.hex(), size, offset, Version(*versions[:2]), Version(*versions[2:]))


def _text(name: bytes, number: int) -> str:
    text = name.rstrip(b"\0").decode("utf-8", "replace")
    if not text:
        raise MalformedLibraryError(f"function {number} of the Metal library has no name")
    return text


class LibraryFile:
    """A `.metallib` file, mapped into memory.

    Raises AirError if the file cannot be read, and MalformedLibraryError if it is damaged.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            with path.open("rb") as file:
                self._bytes = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        except (OSError, ValueError) as error:
            why = error.strerror if isinstance(error, OSError) else "it is empty"
            raise AirError(f"cannot read the Metal library {path}: {why}") from None
        try:
            self.header = read_header(self._bytes[:HEADER_SIZE], len(self._bytes))
            listed = self.header.functions
            self._functions = {
                function.name: function
                for function in read_functions(self.header, self._bytes[listed.offset : listed.end])
            }
        except MalformedLibraryError as error:
            raise type(error)(f"{path}: {error}") from None

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the functions, in the library's order."""
        return tuple(self._functions)

    @property
    def functions(self) -> tuple[LibraryFunction, ...]:
        """The functions, in the library's order."""
        return tuple(self._functions.values())

    def __contains__(self, name: str) -> bool:
        return name in self._functions

    def function(self, name: str) -> LibraryFunction:
        """The function of that name. Raises KeyError if there is none."""
        return self._functions[name]

    def bitcode(self, name: str) -> bytes:
        """A function's module. Raises KeyError if there is none, MalformedLibraryError for another hash."""
        function = self._functions[name]
        start = self.header.bitcode.offset + function.offset
        module = self._bytes[start : start + function.size]
        if hashlib.sha256(module).hexdigest() != function.sha256:
            raise MalformedLibraryError(f"{self.path}: the bitcode of {name} does not match its hash")
        return module
