"""Writes small Metal libraries by hand, since those of real wheels are never committed."""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Mapping
from pathlib import Path

HEADER = struct.Struct("<4sHHHBBHHQ8Q")
MACOS = 0x8001


def field(tag: bytes, value: bytes) -> bytes:
    """One tagged field of a function's record."""
    return tag + struct.pack("<H", len(value)) + value


def record(name: str, module: bytes, offset: int) -> bytes:
    """A function's record in the list of functions; its module begins at `offset` in the bitcode."""
    fields = b"".join(
        [
            field(b"NAME", name.encode() + b"\0"),
            field(b"TYPE", b"\x02"),
            field(b"HASH", hashlib.sha256(module).digest()),
            field(b"MDSZ", struct.pack("<Q", len(module))),
            field(b"OFFT", struct.pack("<3Q", 0, 0, offset)),
            field(b"VERS", struct.pack("<4H", 2, 6, 3, 1)),
            b"ENDT",
        ]
    )
    return struct.pack("<I", len(fields) + 4) + fields


def library_of_records(records: list[bytes], bitcode: bytes) -> bytes:
    """A library with these records, whether they are sound or not, and these modules."""
    functions = struct.pack("<I", len(records)) + b"".join(records)
    metadata = struct.pack("<I", 4) + b"ENDT"
    parts = (functions, metadata, metadata, bitcode)
    places, at = [], HEADER.size
    for part in parts:
        places += [at, len(part)]
        at += len(part)
    # The size of the list leaves out the count in front of it.
    places[1] -= 4
    return HEADER.pack(b"MTLB", MACOS, 2, 7, 0, 0x81, 14, 0, at, *places) + b"".join(parts)


def metal_library(modules: Mapping[str, bytes]) -> bytes:
    """A sound library with these modules by function name."""
    records, at = [], 0
    for name, module in modules.items():
        records.append(record(name, module, at))
        at += len(module)
    return library_of_records(records, b"".join(modules.values()))


def write_metal_library(path: Path, modules: Mapping[str, bytes]) -> Path:
    """Write a sound library with these modules and return its path."""
    path.write_bytes(metal_library(modules))
    return path
