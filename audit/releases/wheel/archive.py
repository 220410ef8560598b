"""A torch wheel, packed or unpacked: identifies its release and reads its files.

Nothing is unpacked to disk. Every defect of the file raises a WheelError of one line.
"""

from __future__ import annotations

import email.parser
import io
import lzma
import re
import struct
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import IO, Protocol, cast

from .byte_ranges import ByteRanges, MappedRanges, StreamRanges
from .errors import WheelError
from .macho import is_arm64

NATIVE_FUNCTIONS = "torchgen/packaged/ATen/native/native_functions.yaml"
DERIVATIVES = "torchgen/packaged/autograd/derivatives.yaml"
COMMON_MPS = "torch/testing/_internal/common_mps.py"
LIBRARY = "torch/lib/libtorch_cpu.dylib"

# The texts that are read whole have up to 2 MB; the bound keeps a damaged or hostile entry from filling the memory.
MOST_TEXT_BYTES = 64 << 20

_ZIP_ERRORS = (
    zipfile.BadZipFile,
    zlib.error,
    lzma.LZMAError,
    struct.error,
    EOFError,
    NotImplementedError,
    RuntimeError,
    ValueError,
)


@dataclass(frozen=True)
class Identity:
    """The identity in the wheel's metadata: the project, its version, and platform tags such as `macosx_14_0_arm64`."""

    project: str
    release: str
    platforms: tuple[str, ...]


class Archive(Protocol):
    """A wheel's content. `label` names it in messages and reports."""

    label: str
    identity: Identity

    def has(self, name: str) -> bool:
        """Whether there is a file of this name, with slashes, relative to site-packages."""
        ...

    def python_sources(self) -> list[str]:
        """The names of torch's Python sources, those of its tests left out."""
        ...

    def names(self, folder: str) -> list[str]:
        """The names of the files below a folder, which ends with a slash, sorted."""
        ...

    def read(self, name: str) -> bytes:
        """A text file of the wheel, whole. Raises WheelError when it is missing, damaged or unreasonably large."""
        ...

    def ranges(self, name: str) -> AbstractContextManager[ByteRanges]:
        """A large file of the wheel as byte ranges, in a `with` statement. Raises WheelError as `read` does."""
        ...


class WheelFile:
    """A packed wheel: a zip archive on disk, or any seekable file such as one that is read over the network."""

    def __init__(self, file: Path | IO[bytes] | io.RawIOBase, label: str) -> None:
        self.label = label
        try:
            self._zip = zipfile.ZipFile(file if isinstance(file, Path) else cast(IO[bytes], file))
        except OSError as error:
            raise WheelError(f"cannot read {label}: {error.strerror or error}") from None
        except _ZIP_ERRORS:
            raise WheelError(f"{label} is not a wheel, or was cut short: it is not a complete zip archive") from None
        self.identity = _identity(self._dist_info("METADATA"), self._dist_info("WHEEL"))

    def has(self, name: str) -> bool:
        """See Archive.has."""
        return name in self._zip.NameToInfo

    def python_sources(self) -> list[str]:
        """See Archive.python_sources."""
        return [name for name in self._zip.namelist() if _is_source(name)]

    def names(self, folder: str) -> list[str]:
        """See Archive.names."""
        return sorted(name for name in self._zip.namelist() if name.startswith(folder) and not name.endswith("/"))

    def read(self, name: str) -> bytes:
        """See Archive.read."""
        with self._reading(name) as (entry, stream):
            if entry.file_size > MOST_TEXT_BYTES:
                raise WheelError(f"{self.label}: {name} is said to have {entry.file_size} bytes")
            return stream.read()

    @contextmanager
    def ranges(self, name: str) -> Iterator[ByteRanges]:
        """See Archive.ranges. The member is inflated as a stream and its checksum verified at the end."""
        with self._reading(name) as (entry, stream):
            yield StreamRanges(stream, entry.file_size)

    @contextmanager
    def _reading(self, name: str) -> Iterator[tuple[zipfile.ZipInfo, IO[bytes]]]:
        if not self.has(name):
            raise WheelError(f"{self.label} has no {name}")
        entry = self._zip.NameToInfo[name]
        try:
            with self._zip.open(entry) as stream:
                yield entry, stream
        except WheelError as error:
            raise type(error)(f"{self.label}: {name}: {error}") from None
        except OSError as error:
            raise WheelError(f"cannot read {self.label}: {error.strerror or error}") from None
        except _ZIP_ERRORS as error:
            raise WheelError(f"{self.label}: {name} is damaged ({error}); fetch the wheel again") from None

    def _dist_info(self, name: str) -> str:
        entries = [entry for entry in self._zip.namelist() if _is_dist_info(entry, name)]
        if len(entries) != 1:
            raise WheelError(f"{self.label} is a zip archive, but no wheel: it has no single .dist-info/{name}")
        return self.read(entries[0]).decode("utf-8", "replace")


class UnpackedWheel:
    """A folder into which a wheel was unpacked, or the site-packages of an installation."""

    def __init__(self, folder: Path, label: str | None = None) -> None:
        self.label = label or str(folder)
        self._folder = folder
        dist_infos = sorted(folder.glob("torch-*.dist-info"))
        if len(dist_infos) != 1:
            raise WheelError(f"{self.label} holds no unpacked torch wheel: it has no single torch-*.dist-info")
        # Some installers drop WHEEL; METADATA is always there.
        tags = dist_infos[0] / "WHEEL"
        self.identity = _identity(_text(dist_infos[0] / "METADATA"), _text(tags) if tags.is_file() else "")

    def has(self, name: str) -> bool:
        """See Archive.has."""
        return (self._folder / name).is_file()

    def python_sources(self) -> list[str]:
        """See Archive.python_sources."""
        names = (path.relative_to(self._folder).as_posix() for path in (self._folder / "torch").rglob("*.py"))
        return sorted(name for name in names if _is_source(name))

    def names(self, folder: str) -> list[str]:
        """See Archive.names."""
        files = (path for path in (self._folder / folder).rglob("*") if path.is_file())
        return sorted(path.relative_to(self._folder).as_posix() for path in files)

    def read(self, name: str) -> bytes:
        """See Archive.read."""
        if not self.has(name):
            raise WheelError(f"{self.label} has no {name}")
        try:
            return (self._folder / name).read_bytes()
        except OSError as error:
            raise WheelError(f"cannot read {self._folder / name}: {error.strerror}") from None

    @contextmanager
    def ranges(self, name: str) -> Iterator[ByteRanges]:
        """See Archive.ranges. The file is mapped into memory."""
        if not self.has(name):
            raise WheelError(f"{self.label} has no {name}")
        try:
            yield MappedRanges(self._folder / name)
        except WheelError as error:
            raise type(error)(f"{self.label}: {name}: {error}") from None


def _text(path: Path) -> str:
    try:
        return path.read_text("utf-8", "replace")
    except OSError as error:
        raise WheelError(f"cannot read {path}: {error.strerror}") from None


def _is_source(name: str) -> bool:
    return name.startswith("torch/") and name.endswith(".py") and not name.startswith("torch/testing/")


def _is_dist_info(entry: str, name: str) -> bool:
    parts = PurePosixPath(entry).parts
    return len(parts) == 2 and parts[0].endswith(".dist-info") and parts[1] == name


def _identity(metadata: str, wheel: str) -> Identity:
    parser = email.parser.HeaderParser()
    fields, tags = parser.parsestr(metadata), parser.parsestr(wheel).get_all("Tag") or []
    platforms = [platform for tag in tags for platform in tag.strip().rpartition("-")[2].split(".")]
    return Identity(str(fields["Name"]), str(fields["Version"]), tuple(platforms))


def open_path(path: Path) -> Archive:
    """Open a wheel file or a folder with an unpacked one, and check that it is torch for Apple silicon.

    Raises WheelError that says what the file is instead.
    """
    if not path.exists():
        raise WheelError(f"there is no file or folder {path}")
    archive: Archive = UnpackedWheel(path) if path.is_dir() else WheelFile(path, str(path))
    require_apple_silicon(archive)
    return archive


def require_apple_silicon(archive: Archive) -> None:
    """Raise WheelError unless the archive is a torch wheel for macOS on arm64.

    The tags do not suffice: the arm64 wheels up to 2.1 are tagged x86_64, so the header of the library decides.
    """
    identity = archive.identity
    if re.sub(r"[-_.]+", "-", identity.project).lower() != "torch":
        raise WheelError(f"{archive.label} is a wheel of {identity.project}, not of torch")
    system = _system(identity.platforms)
    if system == "macOS" and (any("arm64" in tag for tag in identity.platforms) or _library_is_arm64(archive)):
        return
    system = "Intel Macs" if system == "macOS" else system
    raise WheelError(f"{archive.label} is a wheel for {system}: it has no MPS kernels; use one for macosx_*_arm64")


def _library_is_arm64(archive: Archive) -> bool:
    with archive.ranges(LIBRARY) as source:
        return is_arm64(source)


def _system(platforms: tuple[str, ...]) -> str:
    for start, system in (("macosx", "macOS"), ("win", "Windows"), ("manylinux", "Linux"), ("linux", "Linux")):
        if any(platform.startswith(start) for platform in platforms):
            return system
    return f"another platform ({', '.join(platforms) or 'no tag'})"
