"""The Metal libraries that torch ships to Macs, taken out of a release's binary and kept in the cache.

Of a wheel's binary, hundreds of megabytes in one deflated stream, only the bytes up to the end of the wanted library
are inflated; over the network only those are fetched. A release's folder in the cache holds `sections.json`, which
lists the libraries of its binary, and each library that was requested, as `metal_basic.metallib`.
"""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from ....cache import cache_folder
from ....errors import MpsmithError
from ....registry.torch_release import base_version, is_older, public_version
from ....simulator.air.container import MAGIC, LibraryFile
from ....simulator.errors import MalformedLibraryError
from ..data import load_facts
from .archive import LIBRARY, open_path
from .byte_ranges import CHUNK, ByteRanges, MappedRanges
from .errors import (
    MalformedBinaryError,
    NoMetalKernelsError,
    WheelError,
)
from .fetch import open_release, open_url, require_version
from .macho import MAGIC_64, MAGICS_UNIVERSAL, Section, read_header
from .metallib import is_metal_section

FIRST_RELEASE = "2.6.0"

# The library that is read unless another one is named. `metal_bfloat` (2.6 to 2.8) has all of `metal_basic` and the
# kernels for bfloat16, and is what a Mac with macOS 14 loads. `metal_40` has the kernels of `metal_basic` for macOS 26,
# and further ones on tensor operations that nothing but a Mac runs.
PREFERRED = ("metal_bfloat", "metal_basic")

_SECTIONS = "sections.json"
_MACHO = tuple(magic.to_bytes(4, "little") for magic in (MAGIC_64, *MAGICS_UNIVERSAL))


class ShippedCacheError(MpsmithError):
    """A library cannot be kept in the cache."""


@dataclass(frozen=True)
class ShippedLibrary:
    """One library of a release or of a file. `source` names that for people.

    `sections` has every library of the same binary with its size in bytes; `release` is None where the file does not
    say which one it is.
    """

    source: str
    release: str | None
    section: str
    sections: Mapping[str, int]
    file: LibraryFile


def full_release(release: str) -> str:
    """The release that a name such as `2.13`, `2.13.0` or `2.13.0+cpu` means.

    Raises WheelError for what cannot be a release of torch.
    """
    require_version(release)
    name = public_version(release)
    return next((facts.release for facts in load_facts() if facts.release.rpartition(".")[0] == name), name)


def cached_library(release: str, section: str | None = None) -> Path | None:
    """The library of a release if it is in the cache already, as `shipped_library` would return it."""
    name = full_release(release)
    _require_kernels(name)
    folder = _folder(name)
    sections = _recorded_sections(folder)
    if sections is None:
        return None
    chosen = _chosen(sections, section, f"torch {name}")
    path = folder / f"{chosen}.metallib"
    try:
        return path if path.stat().st_size == sections[chosen] else None
    except OSError:
        return None


def shipped_library(release: str, section: str | None = None) -> Path:
    """The `.metallib` file with the kernels of a release: from the cache, else out of its wheel.

    The wheel is the one in the cache, or the index's, of which only what is needed is fetched. `section` names another
    library than the one that is read by default. Raises NoMetalKernelsError for a release that ships none,
    UnreachableError where the index is needed and cannot be reached, and MpsmithError for what else goes wrong.
    """
    found = cached_library(release, section)
    if found is not None:
        return found
    from filelock import FileLock

    name = full_release(release)
    folder = _folder(name)
    with _keeping(folder):
        folder.mkdir(parents=True, exist_ok=True)
        # Of two processes that want the same library at once the second one waits, and then finds it.
        with FileLock(folder / ".lock"):
            return cached_library(name, section) or _extract_release(name, section, folder)


def _extract_release(release: str, section: str | None, folder: Path) -> Path:
    archive = open_release(release)
    for stale in folder.glob(".new-*"):  # of a process that was killed: this one has the lock
        shutil.rmtree(stale, ignore_errors=True)
    with tempfile.TemporaryDirectory(dir=folder, prefix=".new-") as temporary:
        with archive.ranges(LIBRARY) as source:
            places = _metal_sections(source)
            sections = _sizes(places)
            _record_sections(sections, folder)
            path = _extracted(source, places[_chosen(sections, section, f"torch {release}")], Path(temporary))
        return path.replace(folder / path.name)


@contextmanager
def named_library(
    *, release: str | None = None, path: Path | None = None, url: str | None = None, section: str | None = None
) -> Iterator[ShippedLibrary]:
    """The library of a release, of a file or of a wheel on a server, open in a `with` statement.

    The file is a wheel, a folder with an unpacked one, a `.dylib` or a `.metallib`. What comes out of a file is kept
    in a temporary folder only. Raises MpsmithError as `shipped_library` does, and where not exactly one is named.
    """
    if sum(choice is not None for choice in (release, path, url)) != 1:
        raise MpsmithError("name one torch: a release, a file or an address")
    if release is not None:
        library, name = shipped_library(release, section), full_release(release)
        sections = _recorded_sections(library.parent) or {}
        yield ShippedLibrary(f"torch {name}", name, library.stem, sections, LibraryFile(library))
    elif path is not None and _first_bytes(path) == MAGIC:
        file = LibraryFile(path)
        yield ShippedLibrary(str(path), None, path.stem, {path.stem: file.header.size}, file)
    else:
        with _temporary_folder() as folder:
            yield _library_of_binary(path, url, section, folder)


def _library_of_binary(path: Path | None, url: str | None, section: str | None, folder: Path) -> ShippedLibrary:
    with _binary(path, url) as (source, label, release):
        places = _metal_sections(source)
        chosen = _chosen(_sizes(places), section, label)
        extracted = _extracted(source, places[chosen], folder)
    return ShippedLibrary(label, release, chosen, _sizes(places), LibraryFile(extracted))


@contextmanager
def _binary(path: Path | None, url: str | None) -> Iterator[tuple[ByteRanges, str, str | None]]:
    """The binary of a wheel or a file, what it is called, and its release where that is known."""
    if path is not None and _first_bytes(path) in _MACHO:
        try:
            yield MappedRanges(path), str(path), None
        except WheelError as error:
            raise type(error)(f"{path}: {error}") from None
        return
    archive = open_path(path) if path is not None else open_url(str(url))
    with archive.ranges(LIBRARY) as source:
        yield source, archive.label, archive.identity.release


def _first_bytes(path: Path) -> bytes:
    """The magic of a file; nothing for a folder and for what cannot be read, which `open_path` reports."""
    try:
        with path.open("rb") as file:
            return file.read(4)
    except OSError:
        return b""


def _require_kernels(release: str) -> None:
    """Raise NoMetalKernelsError for a release that is known to ship none, without looking at it."""
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


def _chosen(sections: Mapping[str, object], wanted: str | None, label: str) -> str:
    """The section that is wanted, or the preferred one. Raises NoMetalKernelsError where there is none at all."""
    if not sections:
        raise NoMetalKernelsError(f"{label} ships no compiled Metal kernels")
    if wanted is None:
        return next((name for name in PREFERRED if name in sections), next(iter(sections)))
    if wanted not in sections:
        raise MpsmithError(f"{label} has no library {wanted}; it has {', '.join(sections)}")
    return wanted


def _extracted(source: ByteRanges, section: Section, folder: Path) -> Path:
    """Write a section into a file of its name, and make sure that every module in it is what its hash says."""
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
def _temporary_folder() -> Iterator[Path]:
    """A folder in the cache, not in /tmp, which is in memory on many systems."""
    parent = cache_folder() / "shipped"
    with _keeping(parent):
        parent.mkdir(parents=True, exist_ok=True)
        folder = tempfile.TemporaryDirectory(dir=parent, prefix=".reading-")
    with folder as name:
        yield Path(name)


@contextmanager
def _keeping(folder: Path) -> Iterator[None]:
    """Raise ShippedCacheError for an error of the system while something is written into the folder."""
    try:
        yield
    except OSError as error:
        reason = error.strerror or str(error)
        raise ShippedCacheError(
            f"cannot keep Metal kernels in {folder}: {reason}; set MPSMITH_CACHE to a folder on another disk"
        ) from None
