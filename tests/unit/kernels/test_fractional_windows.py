"""How the forward of fractional pooling is launched: its grid, its groups, the numbers that it reads."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from mpsmith.kernels.runtime.fractional import FractionalWindows, group_of, launch_fractional

SIZES = st.integers(1, 100_000)


@given(st.tuples(SIZES, SIZES, SIZES))
def test_groups_fit_limits_and_leave_few_idle_lanes(threads: tuple[int, int, int]) -> None:
    group = group_of(threads)
    assert group[0] * group[1] * group[2] <= 256
    assert all(1 <= size <= most for size, most in zip(group, (32, 256, 64), strict=True))
    for count, size in zip(threads, group, strict=True):
        groups = -(-count // size)
        assert groups * size - count < groups  # no group of this dimension lacks more than one


def test_small_planes_share_a_group() -> None:
    assert group_of((1024, 256, 16)) == (32, 8, 1)
    assert group_of((5, 4, 300)) == (5, 4, 12)
    assert group_of((1, 1, 1_000_000)) == (1, 1, 64)
    assert group_of((33, 1, 1)) == (17, 1, 1)


@given(st.integers(1, 2**31 - 1), st.integers(2, 2**31 - 1))
def test_alpha_is_computed_in_float32(distance: int, outputs: int) -> None:
    windows = FractionalWindows((1, distance + 2, 9), (1, outputs, 1), (1, 2, 9))
    expected = torch.tensor(distance).float() / torch.tensor(outputs - 1).float()
    assert windows.alpha == [0.0, expected.item(), 0.0]


class FakeShader:
    """A fake shader that records the requested kernel and its call."""

    def __init__(self) -> None:
        self.name = ""
        self.called: tuple[object, ...] = ()
        self.options: dict[str, object] = {}

    def kernel(self, name: str, device: torch.device) -> FakeShader:
        self.name = name
        return self

    def __call__(self, *arguments: object, **options: object) -> None:
        self.called, self.options = arguments, options


def launched(x: torch.Tensor, sizes: list[int], outputs: list[int]) -> FakeShader:
    """The launch over a tensor without memory."""
    shader = FakeShader()
    images = x.shape[0] if x.dim() == len(sizes) + 2 else 1
    samples = x.new_empty(images, x.shape[-len(sizes) - 1], len(sizes))
    shape = (*x.shape[: -len(sizes)], *outputs)
    results = (x.new_empty(shape), x.new_empty(shape, dtype=torch.int64))
    launch_fractional(shader, "pool", results, x, samples, FractionalWindows.of(x, outputs, sizes))  # type: ignore[arg-type]
    return shader


@pytest.mark.parametrize(
    ("shape", "name"),
    [
        ((2, 3, 20, 20), "pool_rows_32_float"),
        ((1, 2, 2**15, 2**15), "pool_rows_float"),
        ((2**20, 2**10, 2, 2), "pool_float"),
        ((1, 2, 2**15, 2**15 - 1), "pool_rows_32_float"),
    ],
)
def test_positions_beyond_31_bits_use_64_bits(shape: tuple[int, ...], name: str) -> None:
    outputs = [min(4, side // 2) for side in shape[-2:]]
    assert launched(torch.empty(shape, device="meta"), [2, 2], outputs).name == name


def test_strides_beyond_31_bits_use_64_bits() -> None:
    apart = torch.empty(0, device="meta").as_strided((2, 1, 8, 8), (2**31, 64, 8, 1))
    shader = launched(apart, [2, 2], [4, 4])
    assert shader.name == "pool_rows_float"
    assert shader.options["arg_casts"] is None


def test_a_thread_takes_four_rows_of_volumes_too() -> None:
    shader = launched(torch.empty(2, 3, 9, 12, 13, device="meta"), [2, 2, 2], [5, 6, 7])
    assert shader.options == {"threads": (7, 2, 30), "group_size": (7, 2, 15), "arg_casts": {4: "int32"}}
    assert shader.called[4] == [9, 12, 13, 5, 6, 7, 2, 2, 2, 6, 4212, 1404, 156, 13, 1]
