"""Upsampling by the shipped kernels of each release: modes, layouts, scales, gradients."""

from __future__ import annotations

import pytest
import torch

from mpsmith.simulator.shipped.conventions import upsample
from support.shipped_kernels import Shipped, assert_near, normal, on_both, overload_of
from support.shipped_layouts import layouts

pytestmark = pytest.mark.network

SIZES = {1: ([7], [5], [14]), 2: ([5, 6], [7, 3], [10, 12]), 3: ([3, 4, 5], [5, 2, 6], [6, 8, 10])}
# What a release leaves to MPSGraph, forward and backward.
IN_GRAPH = {
    "2.13.0": {"upsample_nearest1d", "upsample_nearest2d", "_upsample_nearest_exact1d", "_upsample_nearest_exact2d"},
    "2.15.0": set[str](),
}
WITHOUT_GRADIENT = {
    "2.13.0": {
        *IN_GRAPH["2.13.0"],
        "upsample_linear1d",
        "upsample_bilinear2d",
        "_upsample_bilinear2d_aa",
        "_upsample_bicubic2d_aa",
    },
    "2.15.0": {"_upsample_bilinear2d_aa", "_upsample_bicubic2d_aa"},  # which the device of 2.13.0 refuses
}
MODES = sorted({name.partition(".")[0] for name in upsample.PLANNERS if "backward" not in name})


def dimensions(mode: str) -> int:
    return int(mode[mode.index("d", len("_upsample")) - 1] if mode[-1] != "d" else mode[-2]) if "_aa" not in mode else 2


def corners(mode: str) -> list[list[bool]]:
    return [[]] if "nearest" in mode else [[False], [True]]


@pytest.mark.parametrize("mode", MODES)
def test_every_mode_and_layout(shipped: Shipped, mode: str) -> None:
    if mode in IN_GRAPH[shipped.release]:
        pytest.skip("MPSGraph computes it in this release")
    plane, *targets = SIZES[dimensions(mode)]
    for x in layouts(normal(torch.float32), 2, 3, *plane):
        for size in targets:
            for align in corners(mode):
                actual, expected = on_both(shipped, mode, x, size, *align)
                assert_near(actual, expected)


@pytest.mark.parametrize("mode", MODES)
def test_a_given_scale_counts_unless_corners_are_aligned(shipped: Shipped, mode: str) -> None:
    if mode in IN_GRAPH[shipped.release]:
        pytest.skip("MPSGraph computes it in this release")
    count = dimensions(mode)
    x = normal(torch.float32)((2, 3, *SIZES[count][0]))
    scales = [1.5, 1.6, 2.2][:count]
    size = [int(n * scale) for n, scale in zip(x.shape[2:], scales, strict=True)]
    for align in corners(mode):
        actual, expected = on_both(shipped, mode, x, size, *align, *scales)
        assert_near(actual, expected)
        out, expected = on_both(shipped, f"{mode}.out", x, size, *align, *scales)
        assert_near(out, expected)


@pytest.mark.parametrize("mode", MODES)
def test_gradients(shipped: Shipped, mode: str) -> None:
    if mode in WITHOUT_GRADIENT[shipped.release]:
        pytest.skip("MPSGraph computes it in this release, or nothing does")
    plane, *targets = SIZES[dimensions(mode)]
    for size in targets:
        for gradient in layouts(normal(torch.float32), 2, 3, *size):
            for align in corners(mode):
                actual, expected = on_both(shipped, f"{mode}_backward", gradient, size, [2, 3, *plane], *align)
                assert_near(actual, expected, 4)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.uint8], ids=str)
def test_other_dtypes(shipped: Shipped, dtype: torch.dtype) -> None:
    x = (normal(torch.float32)((2, 3, 4, 4, 4)) * 20).to(dtype)
    actual, expected = on_both(shipped, "upsample_nearest3d", x, [5, 6, 7])
    assert_near(actual, expected)


def test_what_a_release_has_no_kernel_for_is_declined(shipped: Shipped) -> None:
    x = torch.rand(1, 1, 4)
    reasons = shipped.reasons(overload_of("upsample_nearest1d"), x, [6])
    assert reasons == ({"MPSGraph"} if shipped.release == "2.13.0" else set())
