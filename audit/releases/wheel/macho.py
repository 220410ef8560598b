"""Reads the parts of a 64-bit arm64 Mach-O file that contain PyTorch's registrations.

A general reader would be too slow: a wheel's library has hundreds of megabytes and comes from a deflate stream.
This one takes code, C strings and the symbol table in one forward pass and holds nothing else.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from .byte_ranges import ByteRanges
from .errors import MalformedBinaryError

MAGIC_64 = 0xFEEDFACF
MAGICS_UNIVERSAL = (0xBEBAFECA, 0xCAFEBABE, 0xBFBAFECA, 0xCAFEBABF)
CPU_ARM64 = 0x0100000C
CPU_X86_64 = 0x01000007

LC_SEGMENT_64 = 0x19
LC_SYMTAB = 0x02
LC_VERSION_MIN_MACOSX = 0x24
LC_BUILD_VERSION = 0x32

# Real files have a few kilobytes of load commands, and initializers of about 100 kB; these bounds keep a damaged size
# field from asking for gigabytes and a damaged symbol table from asking for minutes.
MOST_COMMAND_BYTES = 1 << 20
MOST_FUNCTION_BYTES = 4 << 20

N_STAB = 0xE0
N_TYPE = 0x0E
_N_SECT = 0x0E
NLIST = np.dtype([("name", "<u4"), ("type", "u1"), ("section", "u1"), ("desc", "<u2"), ("value", "<u8")])


@dataclass(frozen=True)
class Section:
    """A section: virtual address, size in bytes, offset in the file, and where its relocations are."""

    segment: str
    name: str
    address: int
    size: int
    offset: int
    relocation_offset: int
    relocation_count: int

    def __contains__(self, address: int) -> bool:
        return self.address <= address < self.address + self.size


@dataclass(frozen=True)
class Header:
    """The contents of the load commands. Offsets are in bytes from the start of the file; versions are as `14.0`."""

    sections: tuple[Section, ...]
    symbol_offset: int
    symbol_count: int
    string_offset: int
    string_size: int
    minimum_macos: str | None
    sdk: str | None

    def section(self, segment: str, name: str) -> Section:
        """The section of that name. Raises MalformedBinaryError when there is none."""
        for section in self.sections:
            if (section.segment, section.name) == (segment, name):
                return section
        raise MalformedBinaryError(f"the binary has no section {segment},{name}")


def is_arm64(source: ByteRanges) -> bool:
    """Whether the file begins like a Mach-O file for arm64; reads 8 bytes."""
    magic, cpu = struct.unpack("<2I", source.take(0, 8))
    return bool(magic == MAGIC_64 and cpu == CPU_ARM64)


def read_header(source: ByteRanges) -> Header:
    """Read the Mach-O header and the load commands: the first bytes of the file.

    Raises MalformedBinaryError for anything but a 64-bit arm64 Mach-O file.
    """
    magic, cpu, _, _, count, size, _, _ = struct.unpack("<8I", source.take(0, 32))
    if magic in MAGICS_UNIVERSAL:
        raise MalformedBinaryError("the library is a universal binary; extract its arm64 part with `lipo -thin arm64`")
    if magic != MAGIC_64:
        raise MalformedBinaryError("the library is not a 64-bit Mach-O file")
    if cpu == CPU_X86_64:
        raise MalformedBinaryError("the library is built for Intel Macs, which have no MPS kernels")
    if cpu != CPU_ARM64:
        raise MalformedBinaryError(f"the library is built for an unknown processor ({cpu:#x})")
    if size > MOST_COMMAND_BYTES:
        raise MalformedBinaryError(f"the load commands are said to have {size} bytes")
    return _parse_commands(bytes(source.take(32, size)), count)


def _parse_commands(data: bytes, count: int) -> Header:
    sections: list[Section] = []
    symbols: tuple[int, int, int, int] | None = None
    minimum = sdk = None
    for command, body in _commands(data, count):
        if command == LC_SEGMENT_64:
            sections.extend(_sections(body))
        elif command == LC_SYMTAB:
            symbols = _unpack("<4I", body, 8)
        elif command == LC_BUILD_VERSION:
            _, minimum_code, sdk_code = _unpack("<3I", body, 8)
            minimum, sdk = _version(minimum_code), _version(sdk_code)
        elif command == LC_VERSION_MIN_MACOSX:
            minimum_code, sdk_code = _unpack("<2I", body, 8)
            minimum, sdk = _version(minimum_code), _version(sdk_code)
    if symbols is None:
        raise MalformedBinaryError("the library has no symbol table")
    return Header(tuple(sections), *symbols, minimum_macos=minimum, sdk=sdk)


def _commands(data: bytes, count: int) -> Iterator[tuple[int, bytes]]:
    position = 0
    for _ in range(count):
        command, size = _unpack("<2I", data, position)
        if size < 8 or position + size > len(data):
            raise MalformedBinaryError("the load commands of the library are damaged")
        yield command, data[position : position + size]
        position += size


def _sections(body: bytes) -> Iterator[Section]:
    (count,) = _unpack("<I", body, 64)
    for number in range(count):
        at = 72 + 80 * number
        name, segment = _unpack("<16s16s", body, at)
        address, size, offset, _, relocation_offset, relocations = _unpack("<QQIIII", body, at + 32)
        yield Section(_name(segment), _name(name), address, size, offset, relocation_offset, relocations)


def _unpack(layout: str, data: bytes, at: int) -> tuple[Any, ...]:
    try:
        return struct.unpack_from(layout, data, at)
    except struct.error:
        raise MalformedBinaryError("the load commands of the library are damaged") from None


def _name(raw: bytes) -> str:
    return raw.rstrip(b"\0").decode("latin-1")


def _version(code: int) -> str:
    return f"{code >> 16}.{(code >> 8) & 0xFF}"


@dataclass(frozen=True)
class SymbolTable:
    """The symbols with an address, sorted by address. `strings` is the table of their names."""

    addresses: npt.NDArray[np.uint64]
    name_offsets: npt.NDArray[np.uint32]
    strings: bytes | memoryview

    def named(self, pattern: re.Pattern[bytes]) -> list[tuple[str, int]]:
        """Names and addresses of the symbols whose names match the pattern anywhere, sorted by address."""
        strings = self.strings
        starts = {_start_of_string(strings, match.start()) for match in pattern.finditer(strings)}
        if not starts:
            return []
        wanted = np.array(sorted(starts), dtype=np.uint32)
        nearest = np.minimum(np.searchsorted(wanted, self.name_offsets), len(wanted) - 1)
        matching = wanted[nearest] == self.name_offsets
        pairs = zip(self.name_offsets[matching].tolist(), self.addresses[matching].tolist(), strict=True)
        return [(self._name(offset), address) for offset, address in pairs]

    def at(self, address: int) -> str | None:
        """The name of a symbol with exactly this address, the first one if there are several."""
        if not 0 <= address < 1 << 64:
            return None
        position = int(np.searchsorted(self.addresses, np.uint64(address)))
        if position == len(self.addresses) or int(self.addresses[position]) != address:
            return None
        return self._name(int(self.name_offsets[position]))

    def following(self, address: int) -> int | None:
        """The address of the next symbol after this address; the function that begins here ends there at the latest."""
        position = int(np.searchsorted(self.addresses, np.uint64(address), side="right"))
        return int(self.addresses[position]) if position < len(self.addresses) else None

    def _name(self, offset: int) -> str:
        return bytes(self.strings[offset : _end_of_string(self.strings, offset)]).decode("latin-1")


_MOST_NAME_BYTES = 1 << 16


def _start_of_string(strings: bytes | memoryview, position: int) -> int:
    """Where the NUL-terminated string around `position` begins."""
    window = max(0, position - _MOST_NAME_BYTES)
    return window + bytes(strings[window:position]).rfind(b"\0") + 1


def _end_of_string(strings: bytes | memoryview, offset: int) -> int:
    window = bytes(strings[offset : offset + _MOST_NAME_BYTES])
    length = window.find(b"\0")
    return offset + (length if length >= 0 else len(window))


@dataclass(frozen=True)
class Image:
    """The parts of a library that registrations are read from."""

    header: Header
    text: Section
    code: npt.NDArray[np.uint32]
    cstrings: Section
    cstring_bytes: memoryview
    symbols: SymbolTable

    def c_string(self, address: int) -> str | None:
        """The NUL-terminated string at a virtual address of __TEXT,__cstring, or None for an address elsewhere."""
        if address not in self.cstrings:
            return None
        start = address - self.cstrings.address
        return bytes(self.cstring_bytes[start : _end_of_string(self.cstring_bytes, start)]).decode("latin-1")

    def instructions(self, address: int) -> list[int]:
        """The 32-bit instructions from `address` to the next symbol. Raises MalformedBinaryError outside the code."""
        if address not in self.text or (address - self.text.address) % 4:
            raise MalformedBinaryError(f"a function is said to begin at {address:#x}, outside the code")
        end = self.text.address + self.text.size
        following = self.symbols.following(address)
        stop = end if following is None else min(following, end)
        if stop - address > MOST_FUNCTION_BYTES:
            raise MalformedBinaryError(f"the function at {address:#x} would have {stop - address} bytes")
        first = (address - self.text.address) // 4
        count = (stop - address) // 4
        instructions: list[int] = self.code[first : first + count].tolist()
        return instructions


Visit = Callable[[Section, ByteRanges], None]


def read_image(source: ByteRanges, is_extra: Callable[[Section], bool], visit_extra: Visit) -> Image:
    """Read an arm64 library in one forward pass: code, C strings and symbols.

    `visit_extra` is called for each section that `is_extra` selects, when the pass reaches it, and takes what it needs.
    Raises MalformedBinaryError if the file contradicts itself.
    """
    header = read_header(source)
    text, cstrings = header.section("__TEXT", "__text"), header.section("__TEXT", "__cstring")
    kept: dict[str, memoryview] = {}

    def keep(key: str, offset: int, size: int) -> tuple[int, Callable[[], None]]:
        return offset, lambda: kept.update({key: source.take(offset, size)})

    def visit(section: Section) -> tuple[int, Callable[[], None]]:
        return section.offset, lambda: visit_extra(section, source)

    parts = [
        keep("code", text.offset, text.size - text.size % 4),
        keep("cstrings", cstrings.offset, cstrings.size),
        keep("symbols", header.symbol_offset, header.symbol_count * NLIST.itemsize),
        keep("strings", header.string_offset, header.string_size),
        *(visit(section) for section in header.sections if is_extra(section)),
    ]
    for _, take_part in sorted(parts, key=lambda part: part[0]):
        take_part()
    source.finish()
    return Image(
        header=header,
        text=text,
        code=np.frombuffer(kept["code"], np.dtype("<u4")),
        cstrings=cstrings,
        cstring_bytes=kept["cstrings"],
        symbols=_symbol_table(kept.pop("symbols"), kept["strings"]),
    )


def _symbol_table(entries: memoryview, strings: memoryview) -> SymbolTable:
    table = np.frombuffer(entries, NLIST)
    # Debugging entries and undefined symbols have no address.
    defined = ((table["type"] & N_STAB) == 0) & ((table["type"] & N_TYPE) == _N_SECT)
    addresses, names = table["value"][defined], table["name"][defined]
    if names.size and int(names.max()) >= len(strings):
        raise MalformedBinaryError("the symbol table refers to names outside the string table")
    order = np.argsort(addresses, kind="stable")
    return SymbolTable(addresses[order], names[order], strings)
