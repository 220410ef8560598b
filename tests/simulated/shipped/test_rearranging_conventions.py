"""Padding, windows, flips, triangles, concatenation and ranges by the shipped kernels."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.nn import functional

from support.shipped_kernels import Shipped, assert_near, normal, on_device

pytestmark = pytest.mark.network

LAYOUTS: dict[str, Callable[[torch.dtype, tuple[int, ...]], Tensor]] = {
    "contiguous": lambda dtype, shape: normal(dtype)(shape),
    "transposed": lambda dtype, shape: normal(dtype)(shape[::-1]).permute(*reversed(range(len(shape)))),
    "stepped": lambda dtype, shape: normal(dtype)((*shape[:-1], 2 * shape[-1] + 1))[..., 1::2],
    "offset": lambda dtype, shape: normal(dtype)((shape[0] + 1, *shape[1:]))[1:],
}
FLOATS = [torch.float32, torch.bfloat16]
# Every layout, and every dtype: not each with each.
SAMPLES = [
    *((layout, torch.float32) for layout in LAYOUTS),
    *(("stepped", dtype) for dtype in (torch.float16, torch.int64, torch.int8, torch.bool, torch.complex64)),
]


def same(shipped: Shipped, function: Callable[..., Any], *arguments: Any, kernels: tuple[str, ...] = ("*",)) -> None:
    """The result and everything that was changed in place are the CPU's."""
    moved = [on_device(argument) for argument in arguments]
    actual = shipped.run(function, *moved, kernels=kernels)
    copies = [argument.clone() if isinstance(argument, Tensor) else argument for argument in arguments]
    assert_near(actual, function(*copies))


def only_in_graph(shipped: Shipped, function: Callable[..., Any], *arguments: Any) -> bool:
    """Whether the operator has no Metal kernel in the release: then it must be declined for that reason."""
    if shipped.release != "2.13.0":
        return False
    assert shipped.reasons(function, *arguments) == {"MPSGraph"}
    return True


PADDING = {1: (2, 1), 2: (1, 2, 0, 1), 3: (1, 2, 0, 1, 1, 0)}


@pytest.mark.parametrize("batched", [True, False])
@pytest.mark.parametrize("dimensions", [1, 2, 3])
@pytest.mark.parametrize("mode", ["reflection", "replication"])
def test_padding_by_its_own_values(shipped: Shipped, mode: str, dimensions: int, batched: bool) -> None:
    pad = list(PADDING[dimensions])
    forward = getattr(torch.ops.aten, f"{mode}_pad{dimensions}d")
    backward = getattr(torch.ops.aten, f"{mode}_pad{dimensions}d_backward")
    in_graph = not (mode == "replication" and dimensions == 1)
    name = f"{mode}_pad{dimensions}d_"
    shape = (*(2,) * batched, 3, *(4, 5, 6)[-dimensions:])
    for layout, values in LAYOUTS.items():
        x = values(torch.float32 if layout != "offset" else torch.bfloat16, shape)
        if in_graph and only_in_graph(shipped, lambda x: forward(x, pad), x):
            continue
        same(shipped, lambda x: forward(x, pad), x, kernels=(f"{name}forward_*",))
        grad = values(x.dtype, tuple(forward(x, pad).shape))
        same(shipped, lambda g, x: backward(g, x, pad), grad, x, kernels=(f"{name}backward_*",))


@pytest.mark.parametrize(("layout", "dtype"), SAMPLES, ids=str)
def test_padding_by_a_constant(shipped: Shipped, layout: str, dtype: torch.dtype) -> None:
    for shape in ((7,), (2, 3, 4), (2, 2, 2, 2, 3)):
        x = LAYOUTS[layout](dtype, shape)
        if only_in_graph(shipped, lambda x: functional.pad(x, (1, 2)), x):
            return
        pads: list[tuple[int, ...]] = [(1, 2), (-1, 2), (-1, -1), (2, 0, 1, 1), (1, 0, 0, 2, 1, 1), (0,) * 8 + (1, 2)]
        for pad in pads:
            if len(pad) <= 2 * len(shape):
                same(shipped, lambda x, pad=pad: functional.pad(x, pad, value=1), x, kernels=())
    wide = LAYOUTS[layout](dtype, (2, 3, 9))
    dense = "dense_" if layout in ("contiguous", "offset") else ""
    same(shipped, lambda x: functional.pad(x, (5, 3), value=1), wide, kernels=(f"constant_pad_nd_{dense}*",))


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
@pytest.mark.parametrize("layout", sorted(LAYOUTS))
def test_windows_as_columns_and_back(shipped: Shipped, layout: str, dtype: torch.dtype) -> None:
    image = LAYOUTS[layout](dtype, (2, 3, 8, 9))
    for window in (
        {"kernel_size": (3, 2)},
        {"kernel_size": (3, 2), "dilation": (2, 1), "padding": (1, 2), "stride": (2, 3)},
    ):
        unfold = lambda x, window=window: functional.unfold(x, **window)  # noqa: E731
        same(shipped, unfold, image, kernels=("im2col_*_u32",))
        same(shipped, unfold, image[0], kernels=("im2col_*_u32",))
        columns = LAYOUTS[layout](dtype, tuple(unfold(image).shape))
        fold = lambda y, window=window: functional.fold(y, (8, 9), **window)  # noqa: E731
        same(shipped, fold, columns, kernels=("col2im_kernel_*_u32",))
        same(shipped, fold, columns[1], kernels=("col2im_kernel_*_u32",))
    windows = LAYOUTS[layout](dtype, (4, 3, 3))
    same(shipped, lambda y: torch.ops.aten.unfold_backward(y, [9, 3], 0, 3, 2), windows, kernels=("unfold_backward_*",))


@pytest.mark.parametrize(("layout", "dtype"), SAMPLES, ids=str)
def test_flip(shipped: Shipped, layout: str, dtype: torch.dtype) -> None:
    bits = normal(dtype)((1,)).element_size() * 8
    for shape, dims, kernel in (
        ((7,), [0], "flip_direct"),
        ((3, 4, 5), [1], "flip_direct"),
        ((3, 4, 5), [0, -1], "flip_direct"),
        ((2, 3, 2, 3), [0, 2], "flip"),
        ((2, 2, 3, 2, 3), [1, 3], "flip"),
    ):
        x = LAYOUTS[layout](dtype, shape)
        if only_in_graph(shipped, lambda x, dims=dims: x.flip(dims), x):
            return
        same(shipped, lambda x, dims=dims: x.flip(dims), x, kernels=(f"{kernel}_{bits}bit",))
    same(shipped, lambda x: x.flip([]), LAYOUTS[layout](dtype, (3, 4)), kernels=())


@pytest.mark.parametrize(("layout", "dtype"), SAMPLES, ids=str)
def test_cat_and_triangles(shipped: Shipped, layout: str, dtype: torch.dtype) -> None:
    x, y = LAYOUTS[layout](dtype, (3, 4, 5)), normal(dtype, 2)((3, 4, 5))
    for dim in (0, 1, -1):
        moves_bytes = dim == 0 and layout in ("contiguous", "offset")
        same(shipped, lambda *all, dim=dim: torch.cat(all, dim), x, y, x, kernels=() if moves_bytes else ("cat_*",))
    wider = torch.complex64 if dtype.is_complex else torch.float32
    same(shipped, lambda *all: torch.cat(all, 1), x, normal(wider)((3, 2, 5)), kernels=("cat_*",))
    for diagonal in (-1, 0, 2):
        for name in ("tril", "triu"):
            same(shipped, lambda x, n=name, k=diagonal: getattr(x, n)(k), x, kernels=(f"{name}_int_*",))
            changed = on_device(x)
            shipped.run(getattr(changed, f"{name}_"), diagonal, kernels=[f"{name}_inplace_int_*"])
            assert_near(changed, getattr(x, name)(diagonal))


def test_matrices_of_nothing_but_places(shipped: Shipped) -> None:
    for rows, columns, offset in ((3, 4, 0), (4, 3, 1), (5, 5, -2), (2, 7, 3), (7, 2, -3)):
        for name in ("tril_indices", "triu_indices"):
            function = getattr(torch, name)
            actual = shipped.run(function, rows, columns, offset, device="mps", kernels=[f"{name}_long"])
            assert_near(actual, function(rows, columns, offset))
        actual = shipped.run(torch.eye, rows, columns, device="mps", dtype=torch.int16, kernels=["eye_short"])
        assert_near(actual, torch.eye(rows, columns, dtype=torch.int16))
        turned = torch.empty(columns, rows, device="mps").t()
        assert_near(shipped.run(torch.eye, rows, columns, out=turned, kernels=["eye_float"]), torch.eye(rows, columns))
    large = shipped.run(torch.eye, 2100, 2000, device="mps", kernels=["eye_diag_float"])
    assert_near(large, torch.eye(2100, 2000))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.int64, torch.uint8], ids=str)
def test_ranges(shipped: Shipped, dtype: torch.dtype) -> None:
    zero = torch.zeros(1)
    if only_in_graph(shipped, lambda x: torch.arange(7, device=x.device), zero):
        return
    for first, last, step in ((0, 10, 1), (5, 100, 7)):
        kernels = ("arange_*_i32",)
        same(
            shipped,
            lambda x, a=(first, last, step): torch.arange(*a, dtype=dtype, device=x.device),
            zero,
            kernels=kernels,
        )
    for steps in (1, 2, 11):
        spaced = lambda x, n=steps: torch.linspace(0, 20, n, dtype=dtype, device=x.device)  # noqa: E731
        same(shipped, spaced, zero, kernels=("linspace_*",) if steps > 1 else ("fill_*",))
    for out in (torch.empty(3, 2, dtype=dtype).t(), torch.empty(12, dtype=dtype)[::2]):
        moved = on_device(out)
        assert_near(shipped.run(torch.arange, 0, 6, out=moved, kernels=["arange_*"]), torch.arange(0, 6, out=out))
        assert_near(shipped.run(torch.linspace, 0, 10, 6, out=moved), torch.linspace(0, 10, 6, out=out))
