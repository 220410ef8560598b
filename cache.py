"""The cache folder, the keys of cached files, and whether mpsmith runs from a checkout."""

from __future__ import annotations

import functools
import hashlib
import os
from pathlib import Path

import platformdirs

PACKAGE = Path(__file__).parent


def cache_folder() -> Path:
    """The user's cache folder for mpsmith, or that of the variable MPSMITH_CACHE. It may not exist yet."""
    chosen = os.environ.get("MPSMITH_CACHE")
    return Path(chosen) if chosen else platformdirs.user_cache_path("mpsmith")


def is_checkout() -> bool:
    """Whether this is a clone of the repository or an editable install; files of other installs are never written."""
    return (PACKAGE / "pyproject.toml").is_file()


def fingerprint(*parts: str | bytes) -> str:
    """A key from texts; it depends on their order and on the boundaries between them."""
    digest = hashlib.sha256()
    for part in parts:
        data = part.encode() if isinstance(part, str) else part
        digest.update(len(data).to_bytes(8, "little") + data)
    return digest.hexdigest()[:32]


@functools.cache
def fingerprint_of_code(*names: str) -> str:
    """A key that changes with the sources of these modules and packages of mpsmith, named without `mpsmith.`.

    A package includes everything below it, also headers and data.
    """
    files = [path for name in names for path in source_files(name)]
    return fingerprint(*(part for path in files for part in (str(path.relative_to(PACKAGE)), path.read_bytes())))


def source_files(name: str) -> list[Path]:
    """The file of a module, or all files of a package, in a fixed order. Raises ValueError if there is none."""
    place = PACKAGE.joinpath(*name.split("."))
    if place.with_suffix(".py").is_file():
        return [place.with_suffix(".py")]
    files = sorted(path for path in place.rglob("*") if path.is_file() and "__pycache__" not in path.parts)
    if not files:
        raise ValueError(f"mpsmith has no module or package {name}")
    return files
