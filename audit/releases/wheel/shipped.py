"""The Metal libraries that torch ships to Macs, extracted from a release's binary and kept in the cache.

A wheel's binary is hundreds of megabytes in one deflated stream. Only the bytes up to the end of the wanted library
are fetched and inflated. A release's folder in the cache holds `sections.json`, which lists the libraries of its
binary, and the library that is used, as `metal_basic.metallib`.
"""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from ....cache import cache_folder
from ....errors import MpsmithError
from ....registry.torch_release import base_version, is_older, public_version
from ....simulator.air.container import LibraryFile
from ....simulator.errors import MalformedLibraryError
from ..data import load_facts
from .archive import LIBRARY
from .byte_ranges import CHUNK, ByteRanges
from .errors import MalformedBinaryError, NoMetalKernelsError, WheelError
from .fetch import open_release, require_version
from .macho import Section, read_header
from .metallib import is_metal_section

FIRST_RELEASE = "2.6.0"

# The library that is read. `metal_bfloat` (2.6 to 2.8) has all of `metal_basic` and the
# kernels for bfloat16, and is what a Mac with macOS 14 loads. `metal_40` has the kernels of `metal_basic` for macOS 26,
# and further ones on tensor operations that nothing but a Mac runs.
PREFERRED = ("metal_bfloat", "metal_basic")

_SECTIONS = "sections.json"


class ShippedCacheError(MpsmithError):
    """A library cannot be kept in the cache."""


def full_release(release: str) -> str:
    """The release that a name such as `2.13`, `2.13.0` or `2.13.0+cpu` means.

    Raises WheelError for what cannot be a release of torch.
    """
    require_version(release)
    name = public_version(release)
    return next((facts.release for facts in load_facts() if facts.release.rpartition(".")[0] == name), name)


def cached_library(release: str) -> Path | None:
    """The library of a release as `shipped_library` would return it, or None if it is not in the cache."""
    name = full_release(release)
    _require_kernels(name)
    folder = _folder(name)
    sections = _recorded_sections(folder)
    if sections is None:
        return None
    chosen = _chosen(sections, f"torch {name}")
    path = folder / f"{chosen}.metallib"
    try:
        return path if path.stat().st_size == sections[chosen] else None
    except OSError:
        return None


def shipped_library(release: str) -> Path:
    """The `.metallib` file with the kernels of a release: from the cache, else extracted from its wheel.

    The wheel is the one in the cache, or the index's, of which only the needed parts are fetched. Raises
    NoMetalKernelsError for a release that ships none, UnreachableError if the index cannot be reached, and MpsmithError
    for other failures.
    """
    cached = cached_library(release)
    if cached is not None:
        return cached
    from filelock import FileLock

    name = full_release(release)
    folder = _folder(name)
    with _keeping(folder):
        folder.mkdir(parents=True, exist_ok=True)
        # If two processes want the same library at once, the second waits and then finds it in the cache.
        with FileLock(folder / ".lock"):
            return cached_library(name) or _extract_release(name, folder)


def _extract_release(release: str, folder: Path) -> Path:
    archive = open_release(release)
    for stale in folder.glob(".new-*"):  # of a process that was killed: this one has the lock
        shutil.rmtree(stale, ignore_errors=True)
    with tempfile.TemporaryDirectory(dir=folder, prefix=".new-") as temporary:
        with archive.ranges(LIBRARY) as source:
            places = _metal_sections(source)
            sections = _sizes(places)
            _record_sections(sections, folder)
            path = _extracted(source, places[_chosen(sections, f"torch {release}")], Path(temporary))
        return path.replace(folder / path.name)


def _require_kernels(release: str) -> None:
    """Raise NoMetalKernelsError for a release that is known to ship none, without reading its wheel."""
    try:
        has_none = is_older(base_version(release), FIRST_RELEASE)
    except ValueError as error:
        raise WheelError(str(error)) from None
    if has_none:
        raise NoMetalKernelsError(
            f"torch {release} ships no compiled Metal kernels; {FIRST_RELEASE} is the first release that does"
        )


def _metal_sections(source: ByteRanges) -> dict[str, Section]:
    return {section.name: section for section in read_header(source).sections if is_metal_section(section)}


def _sizes(places: Mapping[str, Section]) -> dict[str, int]:
    return {name: place.size for name, place in places.items()}


def _chosen(sections: Mapping[str, object], label: str) -> str:
    """The preferred section. Raises NoMetalKernelsError if there is none at all."""
    if not sections:
        raise NoMetalKernelsError(f"{label} ships no compiled Metal kernels")
    return next((name for name in PREFERRED if name in sections), next(iter(sections)))


def _extracted(source: ByteRanges, section: Section, folder: Path) -> Path:
    """Write a section to a file of its name, and check the hash of every module in it."""
    path = folder / f"{section.name}.metallib"
    with _keeping(folder), path.open("wb") as file:
        for at in range(0, section.size, CHUNK):
            file.write(source.take(section.offset + at, min(CHUNK, section.size - at)))
    try:
        library = LibraryFile(path)
        for name in library.names:
            library.bitcode(name)
    except MalformedLibraryError as error:
        raise MalformedBinaryError(f"section {section.name}: {str(error).removeprefix(f'{path}: ')}") from None
    return path


def _folder(release: str) -> Path:
    return cache_folder() / "shipped" / release


def _recorded_sections(folder: Path) -> dict[str, int] | None:
    """The recorded sections of the release's binary; None if they were not recorded."""
    try:
        recorded = json.loads((folder / _SECTIONS).read_text())
        return {str(name): int(size) for name, size in recorded.items()}
    except (OSError, ValueError, AttributeError, TypeError):
        return None


def _record_sections(sections: Mapping[str, int], folder: Path) -> None:
    with _keeping(folder), tempfile.TemporaryDirectory(dir=folder, prefix=".new-") as temporary:
        path = Path(temporary, _SECTIONS)
        path.write_text(json.dumps(sections))
        path.replace(folder / _SECTIONS)


@contextmanager
def _keeping(folder: Path) -> Iterator[None]:
    """Inside, an OSError from writing to the folder becomes a ShippedCacheError."""
    try:
        yield
    except OSError as error:
        reason = error.strerror or str(error)
        raise ShippedCacheError(
            f"cannot keep Metal kernels in {folder}: {reason}; set MPSMITH_CACHE to a folder on another disk"
        ) from None
