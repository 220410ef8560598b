"""Where the declarations stand: those written by hand in this package, the generated ones in the cache."""

from __future__ import annotations

import hashlib
from pathlib import Path

from ...cache import cache_folder

_HERE = Path(__file__).parent
STUBS = _HERE / "include"
"""Foundation.h and its like, written by hand."""


def apple_folder() -> Path:
    """Where the generated framework headers stand, named by what they were generated from; it may not exist yet."""
    return cache_folder() / "check" / f"apple-{_generators()}"


def _generators() -> str:
    """A hash of the programs that write the headers, so that a changed one writes them anew."""
    names = ("metal_header.py", "mps_headers.py", "sources.py")
    return hashlib.sha256(b"".join((_HERE / name).read_bytes() for name in names)).hexdigest()[:12]
