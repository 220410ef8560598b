"""Reads the symbols of an arm64 Mach-O object, and which strings and functions its code refers to.

In an object file every reference is a relocation with a symbol, so no instruction has to be decoded.
"""

from __future__ import annotations

import struct
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from ...audit.releases.wheel.byte_ranges import MemoryRanges
from ...audit.releases.wheel.errors import MalformedBinaryError
from ...audit.releases.wheel.macho import N_STAB, N_TYPE, NLIST, Header, read_header
from ..errors import ToolchainError

_N_EXTERNAL, _N_UNDEFINED = 0x01, 0x00
_BRANCH, _PAGE_OFFSET = 2, 4


@dataclass(frozen=True)
class Symbol:
    """A symbol; `address` is meaningful only for a defined one."""

    name: str
    address: int
    defined: bool
    external: bool


@dataclass(frozen=True)
class CodeReference:
    """A reference in the code at `address`: to a C string (`text`), or to a function that is called (`called`)."""

    address: int
    text: str | None = None
    called: str | None = None


class MachObject:
    """An object file in memory. Raises ToolchainError for anything else."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        source = MemoryRanges(data)
        try:
            header = read_header(source)
            self.sections = header.sections
            self.symbols = _symbols(source, header)
        except (MalformedBinaryError, ValueError):
            raise ToolchainError("the compiler wrote an object file that cannot be read") from None

    def undefined(self) -> list[str]:
        """The names of undefined external symbols."""
        return [symbol.name for symbol in self.symbols if not symbol.defined and symbol.external]

    def references(self, start: int, end: int) -> Iterator[CodeReference]:
        """C strings and calls in the code between two addresses, in order."""
        for section in self.sections:
            if start not in section:
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
        """Name, start and end of each function in the sections of code; it ends where the next one begins."""
        code = [section for section in self.sections if section.name.startswith("__text")]
        starts = sorted(
            (symbol.address, symbol.name)
            for symbol in self.symbols
            if symbol.defined and not symbol.name.startswith("l") and any(symbol.address in section for section in code)
        )
        addresses = sorted({address for address, _ in starts})
        rows = []
        for address, name in starts:
            following = bisect_right(addresses, address)
            section = next(part for part in code if address in part)
            end = addresses[following] if following < len(addresses) else section.address + section.size
            rows.append((name, address, end))
        return rows

    def _c_string(self, symbol: Symbol) -> str | None:
        if not symbol.defined:
            return None
        for section in self.sections:
            if section.name == "__cstring" and symbol.address in section:
                start = section.offset + symbol.address - section.address
                return self._data[start : self._data.index(b"\0", start)].decode("utf-8", "replace")
        return None


def _symbols(source: MemoryRanges, header: Header) -> list[Symbol]:
    table = source.take(header.symbol_offset, header.symbol_count * NLIST.itemsize)
    strings = bytes(source.take(header.string_offset, header.string_size))
    symbols = []
    for name_at, kind, _, _, value in np.frombuffer(table, NLIST).tolist():
        name = strings[name_at : strings.index(b"\0", name_at)].decode("utf-8", "replace")
        debugging = bool(kind & N_STAB)
        defined = not debugging and kind & N_TYPE != _N_UNDEFINED
        symbols.append(Symbol(name, value, defined, bool(kind & _N_EXTERNAL) and not debugging))
    return symbols
