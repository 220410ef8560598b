"""Which line of the Metal source an instruction comes from, read out of a built kernel's DWARF 4 line table."""

from __future__ import annotations

import bisect
import struct
from collections.abc import Iterator
from dataclasses import dataclass

from .tokens import Location

_SECTION = struct.Struct("<IIQQQQIIQQ")


@dataclass(frozen=True)
class _Row:
    address: int
    file: int
    line: int
    ends_sequence: bool


class LineTable:
    """Addresses of one library, relative to where it is loaded, to lines."""

    def __init__(self, library: bytes) -> None:
        self._addresses: list[int] = []
        self._places: list[Location | None] = []
        section = _find_section(library, b".debug_line")
        rows: list[tuple[int, Location | None]] = []
        for unit in _units(section):
            files, program, header = unit
            rows += [
                (r.address, None if r.ends_sequence or not files.get(r.file) else Location(files[r.file], r.line))
                for r in _run(program, header)
            ]
        for address, place in sorted(rows, key=lambda row: row[0]):
            self._addresses.append(address)
            self._places.append(place)

    def locate(self, address: int) -> Location | None:
        """The line of the instruction at or before `address`."""
        i = bisect.bisect_right(self._addresses, address) - 1
        return self._places[i] if i >= 0 else None


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


def _run(program: bytes, header: _Header) -> Iterator[_Row]:
    """The rows that a line program writes."""
    address, file, line, position = 0, 1, 1, 0
    while position < len(program):
        opcode = program[position]
        position += 1
        if opcode >= header.opcode_base:
            step = opcode - header.opcode_base
            address += step // header.line_range * header.minimum_length
            line += header.line_base + step % header.line_range
            yield _Row(address, file, line, False)
        elif opcode == 0:  # an extended instruction
            length, position = _unsigned(program, position)
            if program[position] == 1:
                yield _Row(address, file, line, True)
                address, file, line = 0, 1, 1
            elif program[position] == 2:
                (address,) = struct.unpack_from("<Q", program, position + 1)
            position += length
        elif opcode == 1:  # copy
            yield _Row(address, file, line, False)
        elif opcode == 2:  # advance pc
            step, position = _unsigned(program, position)
            address += step * header.minimum_length
        elif opcode == 3:  # advance line
            step, position = _signed(program, position)
            line += step
        elif opcode == 4:  # set file
            file, position = _unsigned(program, position)
        elif opcode == 8:  # const add pc
            address += (255 - header.opcode_base) // header.line_range * header.minimum_length
        elif opcode == 9:  # fixed advance pc
            (step,) = struct.unpack_from("<H", program, position)
            address += step
            position += 2
        else:
            for _ in range(header.operand_counts[opcode - 1]):
                _, position = _unsigned(program, position)
