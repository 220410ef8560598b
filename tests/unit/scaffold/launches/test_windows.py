"""The windows of pooling kernels, by the operator's name."""

from __future__ import annotations

import pytest

from mpsmith.scaffold.launches.windows import Windows, windows_of


@pytest.mark.parametrize(
    ("operator", "windows"),
    [
        ("adaptive_max_pool3d", Windows(3, True)),
        ("_adaptive_avg_pool3d", Windows(3, False)),
        ("fractional_max_pool2d", Windows(2, True)),
        ("adaptive_max_pool3d_backward", None),
        ("upsample_bilinear2d", None),
    ],
)
def test_windows_by_name(operator: str, windows: Windows | None) -> None:
    assert windows_of(operator) == windows


@pytest.mark.parametrize("spatial", [1, 2, 3])
def test_places_count_the_elements_of_a_plane_in_their_order(spatial: int) -> None:
    windows, extents = Windows(spatial, True), [4, 3, 5][:spatial]
    p0, p1, p2 = 2, 1, 4
    names = {"extents": extents, "p0": p0, "p1": p1, "p2": p2}
    expected = [p0, p0 * 3 + p1, (p0 * 3 + p1) * 5 + p2][spatial - 1]
    assert eval(windows.place_in_plane, names) == expected
    assert eval(windows.elements_of_plane, names) == [4, 12, 60][spatial - 1]
