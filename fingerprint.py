"""What a cache names its answers by: a hash of texts, and of the code that decides."""

from __future__ import annotations

import functools
import hashlib
from pathlib import Path

_PACKAGE = Path(__file__).parent


def fingerprint(*parts: str | bytes) -> str:
    """A key from texts whose order and borders count."""
    digest = hashlib.sha256()
    for part in parts:
        data = part.encode() if isinstance(part, str) else part
        digest.update(len(data).to_bytes(8, "little") + data)
    return digest.hexdigest()[:32]


@functools.cache
def fingerprint_of_code(*names: str) -> str:
    """A key that changes with the sources of these modules and packages of mpsmith, named without `mpsmith.`.

    A package brings everything below it, headers and data included.
    """
    files = [path for name in names for path in source_files(name)]
    return fingerprint(*(part for path in files for part in (str(path.relative_to(_PACKAGE)), path.read_bytes())))


def source_files(name: str) -> list[Path]:
    """The file of a module, or all files of a package, in a fixed order. Raises ValueError when there is none."""
    place = _PACKAGE.joinpath(*name.split("."))
    if place.with_suffix(".py").is_file():
        return [place.with_suffix(".py")]
    files = sorted(path for path in place.rglob("*") if path.is_file() and "__pycache__" not in path.parts)
    if not files:
        raise ValueError(f"mpsmith has no module or package {name}")
    return files
