"""Lists the functions of the Metal libraries that are embedded in PyTorch's library, without their code.

PyTorch's build puts one library for each generation of macOS into a separate section: `metal_basic` for all,
`metal_bfloat` (2.6 to 2.8) and `metal_40` (from 2.12 on) for newer ones.
"""

from __future__ import annotations

from dataclasses import dataclass

from ....simulator.air.container import HEADER_SIZE, read_header, read_names
from ....simulator.errors import MalformedLibraryError
from .byte_ranges import ByteRanges
from .errors import MalformedBinaryError
from .macho import Section


@dataclass(frozen=True)
class MetalLibrary:
    """One embedded library: its section and the names of its functions, in the library's order."""

    section: str
    functions: tuple[str, ...]


def is_metal_section(section: Section) -> bool:
    """Whether a section holds a Metal library, by the name that PyTorch's build gives it."""
    return section.segment == "__TEXT" and section.name.startswith("metal_") and section.size >= HEADER_SIZE


def read_library(section: Section, source: ByteRanges) -> MetalLibrary:
    """The library in a section. Raises MalformedBinaryError when the section holds none or its list is damaged."""
    try:
        header = read_header(source.take(section.offset, HEADER_SIZE), section.size)
        listed = source.take(section.offset + header.functions.offset, header.functions.size)
        return MetalLibrary(section.name, read_names(listed))
    except MalformedLibraryError as error:
        raise MalformedBinaryError(f"section {section.name}: {error}") from None
