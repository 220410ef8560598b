"""Where the declarations stand: those written by hand in this package, the generated ones in the cache."""

from __future__ import annotations

from pathlib import Path

from ....cache import cache_folder, fingerprint_of_code

STUBS = Path(__file__).parent / "include"
"""Foundation.h and its like, written by hand."""

# The programs that write the headers, so that a changed one writes them anew.
GENERATORS = (
    *("simulator.objc.apple.metal_header", "simulator.objc.apple.mps_headers", "simulator.objc.apple.sources"),
    "simulator.objc.comments",
)


def apple_folder() -> Path:
    """Where the generated framework headers stand, named by what they were generated from; it may not exist yet."""
    return cache_folder() / "check" / f"apple-{fingerprint_of_code(*GENERATORS)[:12]}"
