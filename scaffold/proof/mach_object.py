"""Reads what the checker needs of an arm64 Mach-O object: symbols, and what code refers to, in the order of the code.

In an object file every reference is a relocation with a name, so that no instruction has to be decoded.
"""

from __future__ import annotations

import struct
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass

from ..errors import ToolchainError

_MAGIC_64 = 0xFEEDFACF
_LC_SEGMENT_64, _LC_SYMTAB = 0x19, 0x02
_N_STAB, _N_TYPE, _N_EXTERNAL, _N_UNDEFINED = 0xE0, 0x0E, 0x01, 0x00
_BRANCH, _PAGE_OFFSET = 2, 4


@dataclass(frozen=True)
class ObjectSection:
    """A section: where it stands in memory and in the file, and its relocations."""

    name: str
    address: int
    size: int
    offset: int
    relocation_offset: int
    relocation_count: int


@dataclass(frozen=True)
class Symbol:
    """A symbol; `address` is meaningful only for a defined one."""

    name: str
    address: int
    defined: bool
    external: bool


@dataclass(frozen=True)
class CodeReference:
    """What code at `address` refers to: a C string (`text`) or a function that it calls (`called`)."""

    address: int
    text: str | None = None
    called: str | None = None


class MachObject:
    """An object file in memory. Raises ToolchainError for anything else."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self.sections: list[ObjectSection] = []
        self.symbols: list[Symbol] = []
        try:
            self._read_commands()
        except (struct.error, ValueError, IndexError):
            raise ToolchainError("the compiler wrote an object file that cannot be read") from None

    def undefined(self) -> list[str]:
        """The names that the linker has to find elsewhere."""
        return [symbol.name for symbol in self.symbols if not symbol.defined and symbol.external]

    def references(self, start: int, end: int) -> Iterator[CodeReference]:
        """C strings and calls in the code between two addresses, in order."""
        for section in self.sections:
            if not section.address <= start < section.address + section.size:
                continue
            referred = []
            for number in range(section.relocation_count):
                place, packed = struct.unpack_from("<iI", self._data, section.relocation_offset + 8 * number)
                index, external, kind = packed & 0xFFFFFF, packed >> 27 & 1, packed >> 28
                if external and kind in (_BRANCH, _PAGE_OFFSET) and start <= section.address + place < end:
                    referred.append((section.address + place, kind, self.symbols[index]))
            for address, kind, symbol in sorted(referred, key=lambda row: row[0]):
                if kind == _BRANCH:
                    yield CodeReference(address, called=symbol.name)
                elif (text := self._c_string(symbol)) is not None:
                    yield CodeReference(address, text=text)

    def functions(self) -> list[tuple[str, int, int]]:
        """Name, start and end of what stands in the sections of code; it ends where the next one begins."""
        code = [section for section in self.sections if section.name.startswith("__text")]
        starts = sorted(
            (symbol.address, symbol.name)
            for symbol in self.symbols
            if symbol.defined
            and not symbol.name.startswith("l")
            and any(section.address <= symbol.address < section.address + section.size for section in code)
        )
        addresses = sorted({address for address, _ in starts})
        rows = []
        for address, name in starts:
            following = bisect_right(addresses, address)
            section = next(part for part in code if part.address <= address < part.address + part.size)
            end = addresses[following] if following < len(addresses) else section.address + section.size
            rows.append((name, address, end))
        return rows

    def _c_string(self, symbol: Symbol) -> str | None:
        if not symbol.defined:
            return None
        for section in self.sections:
            if section.name == "__cstring" and section.address <= symbol.address < section.address + section.size:
                start = section.offset + symbol.address - section.address
                return self._data[start : self._data.index(b"\0", start)].decode("utf-8", "replace")
        return None

    def _read_commands(self) -> None:
        magic, _, _, _, count, _, _, _ = struct.unpack_from("<8I", self._data)
        if magic != _MAGIC_64:
            raise ValueError
        position = 32
        for _ in range(count):
            command, size = struct.unpack_from("<2I", self._data, position)
            if command == _LC_SEGMENT_64:
                self._read_sections(position)
            elif command == _LC_SYMTAB:
                self._read_symbols(*struct.unpack_from("<4I", self._data, position + 8))
            position += size

    def _read_sections(self, position: int) -> None:
        (count,) = struct.unpack_from("<I", self._data, position + 64)
        for number in range(count):
            start = position + 72 + 80 * number
            raw, _, address, size, offset, _, relocations, relocation_count = struct.unpack_from(
                "<16s16sQQIIII", self._data, start
            )
            name = raw.rstrip(b"\0").decode("ascii")
            self.sections.append(ObjectSection(name, address, size, offset, relocations, relocation_count))

    def _read_symbols(self, offset: int, count: int, strings: int, _size: int) -> None:
        for number in range(count):
            name_at, kind, _, _, value = struct.unpack_from("<IBBHQ", self._data, offset + 16 * number)
            start = strings + name_at
            name = self._data[start : self._data.index(b"\0", start)].decode("utf-8", "replace")
            debugging = bool(kind & _N_STAB)
            defined = not debugging and kind & _N_TYPE != _N_UNDEFINED
            self.symbols.append(Symbol(name, value, defined, bool(kind & _N_EXTERNAL) and not debugging))
