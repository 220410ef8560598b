"""Compares our kernels with references other than torch: scipy in float64, numpy's LAPACK, Pillow.

The judge compares with torch's CPU. It cannot see errors that the CPU shares, for example by the same formula.
"""

from __future__ import annotations

from collections.abc import Iterator

from .measured import ReferenceComparison
from .resampling import resampling
from .special import special_functions
from .systems import linear_algebra

__all__ = ["ReferenceComparison", "against_references"]


def against_references() -> Iterator[ReferenceComparison]:
    """Yield all comparisons; those of resampling need Pillow. Raises MpsmithError if scipy is not installed."""
    yield from special_functions()
    yield from linear_algebra()
    yield from resampling()
