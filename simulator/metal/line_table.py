"""Source lines of instructions, read from the DWARF 4 line table of a built kernel."""

from __future__ import annotations

import bisect
import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import ClassVar

from .tokens import Location

_SECTION = struct.Struct("<IIQQQQIIQQ")


@dataclass(frozen=True)
class _Row:
    address: int
    file: int
    line: int
    ends_sequence: bool


class LineTable:
    """Maps addresses in one library, relative to its load address, to source lines."""

    def __init__(self, library: bytes) -> None:
        rows: list[tuple[int, Location | None]] = []
        for files, program, header in _units(_find_section(library, b".debug_line")):
            for row in _LineProgram(program, header).rows():
                has_file = files.get(row.file) and not row.ends_sequence
                rows.append((row.address, Location(files[row.file], row.line) if has_file else None))
        rows = _named(sorted(rows, key=lambda row: row[0]))
        self._addresses = [address for address, _ in rows]
        self._locations = [location for _, location in rows]

    def locate(self, address: int) -> Location | None:
        """The line of the instruction at or before `address`."""
        i = bisect.bisect_right(self._addresses, address) - 1
        return self._locations[i] if i >= 0 else None


def _named(rows: list[tuple[int, Location | None]]) -> list[tuple[int, Location | None]]:
    """The rows; code with line 0, which the optimizer merged from several lines, gets the line of the row before it."""
    named: list[tuple[int, Location | None]] = []
    for address, location in rows:
        if location is not None and location.line == 0:
            location = named[-1][1] if named else None
        named.append((address, location))
    return named


def _find_section(library: bytes, name: bytes) -> bytes:
    """Content of an ELF section; empty if there is none."""
    (offset,) = struct.unpack_from("<Q", library, 0x28)
    size, count, names = struct.unpack_from("<HHH", library, 0x3A)
    headers = [_SECTION.unpack_from(library, offset + i * size) for i in range(count)]
    strings = headers[names][4]
    for header in headers:
        start = strings + header[0]
        if library[start : library.index(b"\0", start)] == name:
            return library[header[4] : header[4] + header[5]]
    return b""


@dataclass(frozen=True)
class _Header:
    minimum_length: int
    line_base: int
    line_range: int
    opcode_base: int
    operand_counts: bytes


def _units(section: bytes) -> Iterator[tuple[dict[int, str], bytes, _Header]]:
    """The files, the program and the header of each unit of the section."""
    position = 0
    while position + 4 <= len(section):
        (length,) = struct.unpack_from("<I", section, position)
        unit = section[position + 4 : position + 4 + length]
        position += 4 + length
        version, header_length = struct.unpack_from("<HI", unit)
        if version != 4:
            continue
        minimum, _, _, line_base, line_range, opcode_base = struct.unpack_from("<BBBbBB", unit, 6)
        cursor = 12 + opcode_base - 1
        counts = unit[12:cursor]
        while unit[cursor]:  # folders
            cursor = unit.index(b"\0", cursor) + 1
        cursor += 1
        files: dict[int, str] = {}
        while unit[cursor]:
            end = unit.index(b"\0", cursor)
            files[len(files) + 1] = unit[cursor:end].decode(errors="replace")
            cursor = end + 1
            for _ in range(3):  # folder, time, size
                _, cursor = _unsigned(unit, cursor)
        yield files, unit[6 + header_length :], _Header(minimum, line_base, line_range, opcode_base, counts)


def _unsigned(data: bytes, position: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[position]
        position += 1
        value |= (byte & 0x7F) << shift
        shift += 7
        if not byte & 0x80:
            return value, position


def _signed(data: bytes, position: int) -> tuple[int, int]:
    start = position
    value, position = _unsigned(data, position)
    bits = 7 * (position - start)
    return (value - (1 << bits) if value >> (bits - 1) else value), position


class _LineProgram:
    """The state machine that a line program of DWARF drives."""

    def __init__(self, program: bytes, header: _Header) -> None:
        self._program = program
        self._header = header
        self._position = 0
        self._reset()

    def rows(self) -> Iterator[_Row]:
        """The rows that the program appends to the table."""
        while self._position < len(self._program):
            opcode = self._program[self._position]
            self._position += 1
            if opcode >= self._header.opcode_base:
                self._special(opcode)
                yield self._row()
            elif opcode == 0:
                yield from self._extended()
            elif opcode == 1:  # copy
                yield self._row()
            elif opcode in self._STANDARD:
                self._STANDARD[opcode](self)
            else:
                for _ in range(self._header.operand_counts[opcode - 1]):
                    self._unsigned()

    def _reset(self) -> None:
        self._address, self._file, self._line = 0, 1, 1

    def _row(self, ends_sequence: bool = False) -> _Row:
        return _Row(self._address, self._file, self._line, ends_sequence)

    def _unsigned(self) -> int:
        value, self._position = _unsigned(self._program, self._position)
        return value

    def _special(self, opcode: int) -> None:
        step = opcode - self._header.opcode_base
        self._address += step // self._header.line_range * self._header.minimum_length
        self._line += self._header.line_base + step % self._header.line_range

    def _extended(self) -> Iterator[_Row]:
        length = self._unsigned()
        opcode = self._program[self._position]
        if opcode == 1:  # end sequence
            yield self._row(ends_sequence=True)
            self._reset()
        elif opcode == 2:  # set address
            (self._address,) = struct.unpack_from("<Q", self._program, self._position + 1)
        self._position += length

    def _advance_pc(self) -> None:
        self._address += self._unsigned() * self._header.minimum_length

    def _advance_line(self) -> None:
        step, self._position = _signed(self._program, self._position)
        self._line += step

    def _set_file(self) -> None:
        self._file = self._unsigned()

    def _const_add_pc(self) -> None:
        step = 255 - self._header.opcode_base
        self._address += step // self._header.line_range * self._header.minimum_length

    def _fixed_advance_pc(self) -> None:
        (step,) = struct.unpack_from("<H", self._program, self._position)
        self._address += step
        self._position += 2

    _STANDARD: ClassVar[dict[int, Callable[[_LineProgram], None]]] = {
        2: _advance_pc,
        3: _advance_line,
        4: _set_file,
        8: _const_add_pc,
        9: _fixed_advance_pc,
    }
