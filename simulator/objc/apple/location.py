"""The folders of Apple's headers: hand-written ones in this package, generated ones in the cache."""

from __future__ import annotations

from pathlib import Path

from ....cache import cache_folder, fingerprint_of_code
from .sources import MLX_METAL

STUBS = Path(__file__).parent / "include"
"""Hand-written headers such as Foundation.h."""

# The generators of the headers: a change of one generates them again.
GENERATORS = (
    *("simulator.objc.apple.metal_header", "simulator.objc.apple.mps_headers", "simulator.objc.apple.sources"),
    "simulator.objc.comments",
)


def apple_folder() -> Path:
    """The folder of the generated headers, named by their generators; it may not exist yet."""
    return cache_folder() / "check" / f"apple-{fingerprint_of_code(*GENERATORS)[:12]}"


def metal_cpp_folder() -> Path:
    """The folder of metal-cpp, Apple's C++ interface of Metal, as it was fetched; it may not exist yet."""
    return cache_folder() / "check" / MLX_METAL.replace("mlx-metal==", "metal-cpp-of-mlx-")
