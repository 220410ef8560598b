"""Antialiased resampling: the reach of the filters, and the distance between windows."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from . import rows

# The filters of the Metal sources, and their reach in inputs.
SUPPORT = {"linear": 1.0, "cubic": 2.0, "lanczos": 3.0}
# A thread waits so often for each element of a window.
_STEPS_OF_ELEMENT = 3


def window_distances(
    inputs: Iterable[int], outputs: Iterable[int], align_corners: bool, scales: Iterable[float | None]
) -> list[float]:
    """For height and width, the distance between the windows of adjacent outputs, in inputs."""
    (height, width), (rows_after, columns_after), (scale_h, scale_w) = inputs, outputs, scales
    vertical = _distance(height, rows_after, align_corners, scale_h)
    return [vertical, _distance(width, columns_after, align_corners, scale_w)]


def is_too_far(operator: str, filter_name: str, distances: Iterable[float], sizes: Sequence[int]) -> bool:
    """Whether a launch would take too long for windows with these distances, in dimensions of these sizes."""
    if _STEPS_OF_ELEMENT * max(sizes) <= rows.MOST_STEPS:
        return False
    reaches = [2 * math.ceil(SUPPORT[filter_name] * max(distance, 1.0)) + 1 for distance in distances]
    longest = max(map(min, reaches, sizes))
    return rows.is_too_long(operator, _STEPS_OF_ELEMENT * longest, f"windows of {longest} elements")


def _distance(before: int, after: int, align_corners: bool, scale: float | None) -> float:
    if align_corners:
        return (before - 1) / (after - 1) if after > 1 else 0.0
    return 1.0 / scale if scale is not None and scale > 0.0 else before / after
