"""Antialiased resampling: how far the filters reach, and the distance of two windows."""

from __future__ import annotations

from collections.abc import Iterable

# The filters of the Metal sources, and their reach in inputs.
SUPPORT = {"linear": 1.0, "cubic": 2.0, "lanczos": 3.0}


def window_distances(
    inputs: Iterable[int], outputs: Iterable[int], align_corners: bool, scales: Iterable[float | None]
) -> list[float]:
    """For each axis, the distance of the windows of two neighbouring outputs, in inputs."""
    sizes = zip(inputs, outputs, scales, strict=True)
    return [_distance(before, after, align_corners, scale) for before, after, scale in sizes]


def _distance(before: int, after: int, align_corners: bool, scale: float | None) -> float:
    if align_corners:
        return (before - 1) / (after - 1) if after > 1 else 0.0
    return 1.0 / scale if scale is not None and scale > 0.0 else before / after
