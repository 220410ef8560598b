"""Our kernels against references that are not torch: scipy in float64, numpy's LAPACK, Pillow.

The judge compares with torch's CPU. What that gets wrong, or computes by the same formula, it would not see.
"""

from __future__ import annotations

from collections.abc import Iterator

from .measured import AgainstReference
from .resampling import resampling
from .special import special_functions
from .systems import linear_algebra

__all__ = ["AgainstReference", "against_references"]


def against_references() -> Iterator[AgainstReference]:
    """Each measurement. Raises MpsmithError where scipy is not installed; without Pillow resampling is left out."""
    yield from special_functions()
    yield from linear_algebra()
    yield from resampling()
