"""Reads the library inside a wheel: its registrations for MPS and its Metal functions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from .archive import LIBRARY, Archive
from .byte_ranges import ByteRanges
from .macho import Section, read_image
from .metallib import MetalLibrary, is_metal_section, read_library
from .registrations import Registration, read_registrations


@dataclass(frozen=True)
class BinaryEvidence:
    """The registrations of one library and its embedded Metal libraries. Versions are of macOS, like `14.0`."""

    registrations: tuple[Registration, ...]
    libraries: tuple[MetalLibrary, ...]
    minimum_macos: str | None
    sdk: str | None

    def registered(self, key: str) -> Mapping[str, Registration]:
        """The registrations under a dispatch key for overloads of aten, by name without namespace."""
        return self._by_key.get(key, {})

    @cached_property
    def _by_key(self) -> Mapping[str, Mapping[str, Registration]]:
        table: dict[str, dict[str, Registration]] = {}
        for registration in self.registrations:
            namespace, _, name = registration.overload.partition("::")
            if namespace == "aten":
                table.setdefault(registration.key, {})[name] = registration
        return table

    def metal_functions(self) -> tuple[str, ...]:
        """The names of all Metal functions, each once; the libraries for newer systems repeat the others' names."""
        return tuple(dict.fromkeys(name for library in self.libraries for name in library.functions))


def read_binary(archive: Archive) -> BinaryEvidence:
    """Read the library of a macOS wheel in one forward pass, from the archive itself.

    Raises WheelError when the archive has no such library, and MalformedBinaryError when it contradicts itself.
    """
    libraries: list[MetalLibrary] = []

    def visit(section: Section, source: ByteRanges) -> None:
        libraries.append(read_library(section, source))

    with archive.ranges(LIBRARY) as source:
        image = read_image(source, is_metal_section, visit)
        return BinaryEvidence(
            tuple(read_registrations(image)), tuple(libraries), image.header.minimum_macos, image.header.sdk
        )
