"""The files that a release's host code needs: libraries and C++ headers from the macOS wheel, in the cache.

mpsmith contains none of them: they are read from the package index, or from a wheel in the cache, on request.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

from ....cache import cache_folder
from .archive import Archive
from .byte_ranges import CHUNK
from .errors import WheelError
from .fetch import open_release
from .shipped import full_release

# In the order in which they need each other.
LIBRARIES = ("libomp.dylib", "libc10.dylib", "libtorch_cpu.dylib")
_HEADERS = "torch/include/"


def cached_host_files(release: str) -> Path | None:
    """The folder `torch` of a release with `lib` and `include`, if it was unpacked before."""
    folder = _folder(full_release(release))
    return folder / "torch" if folder.is_dir() else None


def host_files(release: str) -> Path:
    """The folder `torch` of a release with `lib` and `include`: from the cache, else unpacked from its macOS wheel.

    Raises WheelError for a release without such a wheel or a damaged one, UnreachableError if there is no network.
    """
    cached = cached_host_files(release)
    if cached is not None:
        return cached
    archive = open_release(full_release(release))
    target = _folder(full_release(release))
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=target.parent, prefix=".unpacking-") as temporary:
            folder = Path(temporary) / "files"
            for name in (*(f"torch/lib/{library}" for library in LIBRARIES), *archive.names(_HEADERS)):
                _unpack(archive, name, folder / name)
            if not target.is_dir():
                folder.replace(target)
    except OSError as error:
        raise WheelError(f"cannot unpack the wheel into {target}: {error.strerror or error}") from None
    return target / "torch"


def _unpack(archive: Archive, name: str, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with archive.ranges(name) as source, path.open("wb") as file:
        for at in range(0, source.size, CHUNK):
            file.write(source.take(at, min(CHUNK, source.size - at)))
        source.finish()


def _folder(release: str) -> Path:
    return cache_folder() / "wheel-files" / release
