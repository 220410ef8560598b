"""The container of compiled Metal kernels, a `.metallib` file: which kernels it holds, and each one's bitcode.

A library begins with a header of 88 bytes that says where its four parts lie: the list of functions, their public and
their private metadata, and the bitcode, one module a function. Each function of the list is a record of tagged fields
(a four-letter tag, a 16-bit size, as many bytes) up to the tag `ENDT`. Everything is little endian, and offsets of
parts count from the start of the library.

Nothing in the file is trusted: every count, size and offset is checked before it is followed. `read_header` and
`read_functions` take bytes alone, so that a library may also come out of a stream.
"""

from __future__ import annotations

import hashlib
import mmap
import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from .errors import AirError, MalformedLibraryError

MAGIC = b"MTLB"
HEADER_SIZE = 88

# The only kind of function that PyTorch's libraries hold; vertex functions are 0, fragment functions 1.
KERNEL = 2

# The lists of torch 2.15 have 3 MB; the bound keeps a damaged size field from asking for gigabytes.
MOST_LIST_BYTES = 256 << 20

_HEADER = struct.Struct("<4sHHHBBHHQ8Q")
_MACOS = 0x8001
_COUNT_BYTES = 4
_END, _NAME = b"ENDT", b"NAME"
_TAG = struct.Struct("<4sH")
_RECORD_LENGTH = struct.Struct("<I")
# What a record must have, and the layout of each; NAME, a text that a NUL ends, is the sixth.
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
    """Where a part of the library begins and how many bytes it has."""

    offset: int
    size: int

    @property
    def end(self) -> int:
        """Where the part ends."""
        return self.offset + self.size


@dataclass(frozen=True)
class LibraryHeader:
    """What the first 88 bytes say. `functions` includes the count that stands in front of the list."""

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
    """The header in the first bytes of a library of which `available` bytes can be had.

    Raises MalformedLibraryError unless it is a library for macOS whose parts lie inside it and apart from each other.
    """
    if len(data) < HEADER_SIZE or data[:4] != MAGIC:
        raise MalformedLibraryError("there is no Metal library: it does not begin with MTLB and a header")
    _, platform, major, minor, _, _, macos_major, macos_minor, size, *places = _HEADER.unpack_from(data)
    if platform != _MACOS:
        raise MalformedLibraryError(f"the Metal library is for another system than macOS ({platform:#x})")
    if size > available:
        raise MalformedLibraryError(f"the Metal library is said to have {size} bytes, but {available} are there")
    # The size of the function list leaves out the count in front of it.
    functions, *others = (ByteSpan(*places[at : at + 2]) for at in range(0, 8, 2))
    parts = [ByteSpan(functions.offset, functions.size + _COUNT_BYTES), *others]
    _check_apart(parts, size)
    if functions.size > MOST_LIST_BYTES:
        raise MalformedLibraryError(f"the function list of the Metal library is said to have {functions.size} bytes")
    return LibraryHeader(Version(major, minor), Version(macos_major, macos_minor), size, *parts)


def _check_apart(parts: list[ByteSpan], size: int) -> None:
    end = HEADER_SIZE
    for part in sorted(parts):
        if part.offset < end or part.end > size:
            raise MalformedLibraryError(
                f"bytes {part.offset} to {part.end} of the Metal library lie outside it or in two of its parts"
            )
        end = part.end


def read_functions(header: LibraryHeader, data: bytes | memoryview) -> tuple[LibraryFunction, ...]:
    """The functions of a library in its order, out of the bytes of `header.functions`.

    Raises MalformedLibraryError when the list is damaged, names a function twice, or gives two functions the same
    bytes or bytes outside the bitcode.
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
    for function in sorted(functions, key=lambda each: each.offset):
        if function.offset < end or function.offset + function.size > header.bitcode.size:
            raise MalformedLibraryError(
                f"the bitcode of {function.name} lies outside the Metal library's or in another function's"
            )
        end = function.offset + function.size
    return functions


def read_names(data: bytes | memoryview) -> tuple[str, ...]:
    """The names of the functions alone, out of the same bytes: several times as fast as `read_functions`.

    Raises MalformedLibraryError when the list is damaged; where the functions' bitcode lies is not looked at.
    """
    listed = bytes(data)
    names = []
    for number, (position, end) in enumerate(_records(listed)):
        start = position + _TAG.size
        tag, size = _TAG.unpack_from(listed, position) if start <= end else (b"", 0)
        # The name is the first field; where it is not, it is looked for.
        if tag == _NAME and start + size <= end:
            name = listed[start : start + size]
        else:
            name = _fields(listed, position, end).get(_NAME, b"")
        names.append(_text(name, number))
    return tuple(names)


def _records(data: bytes) -> Iterator[tuple[int, int]]:
    """Where the fields of each function begin and end."""
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
    """A `.metallib` file, mapped into memory: only what is asked for is read.

    `names` has the functions in the library's order. Raises AirError when the file cannot be read, and
    MalformedLibraryError when it is no sound library.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            with path.open("rb") as file:
                self._bytes = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        except (OSError, ValueError) as error:
            raise AirError(f"cannot read the Metal library {path}: {error}") from None
        try:
            self.header = read_header(self._bytes[:HEADER_SIZE], len(self._bytes))
            listed = self.header.functions
            self._functions = {
                function.name: function
                for function in read_functions(self.header, self._bytes[listed.offset : listed.end])
            }
        except MalformedLibraryError as error:
            raise MalformedLibraryError(f"{path}: {error}") from None

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
        """The function of that name. Raises KeyError when the library has none."""
        return self._functions[name]

    def bitcode(self, name: str) -> bytes:
        """A function's module. Raises KeyError as `function`, and MalformedLibraryError for bytes of another hash."""
        function = self._functions[name]
        start = self.header.bitcode.offset + function.offset
        module = self._bytes[start : start + function.size]
        if hashlib.sha256(module).hexdigest() != function.sha256:
            raise MalformedLibraryError(f"{self.path}: the bitcode of {name} is not what its hash says")
        return module
