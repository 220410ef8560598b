"""Scans by the shipped kernels: every overload, layout, dtype, and lengths that are split."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
import torch
from torch import Tensor

from support.shipped_kernels import LAYOUTS, Shipped, assert_near, normal, on_both

pytestmark = pytest.mark.network

FUNCTIONS: dict[str, Callable[[Tensor, int], Tensor | tuple[Tensor, Tensor]]] = {
    "cumsum": torch.cumsum,
    "cumprod": torch.cumprod,
    "logcumsumexp": torch.logcumsumexp,
    "cummax": torch.cummax,
    "cummin": torch.cummin,
}


def assert_same(shipped: Shipped, name: str, x: Tensor, dim: int, scale: float = 1.0) -> None:
    function = FUNCTIONS[name]
    actual, expected = shipped.run(function, x, dim), function(x, dim)
    for one, other in zip(_all(actual), _all(expected), strict=True):
        assert_near(one, other, scale=scale)


def _all(result: Tensor | tuple[Tensor, Tensor]) -> list[Tensor]:
    return [result] if isinstance(result, Tensor) else list(result)


@pytest.mark.parametrize("name", sorted(FUNCTIONS))
def test_every_layout_along_every_dimension(shipped: Shipped, name: str) -> None:
    for layout in sorted(LAYOUTS.keys() - {"empty", "no_dimension"}):
        x = LAYOUTS[layout](normal(torch.float32))
        for dim in range(x.dim()):
            assert_same(shipped, name, x, dim, scale=10)


@pytest.mark.parametrize("overload", ["cumsum", "cumsum_", "cumsum.out", "cumprod.out", "_logcumsumexp.out"])
def test_every_overload(shipped: Shipped, overload: str) -> None:
    actual, expected = on_both(shipped, overload, normal(torch.float32)((4, 70)), 1)
    assert_near(actual, expected, scale=10)


@pytest.mark.parametrize("dtype", [torch.float16, torch.int64, torch.int32, torch.uint8, torch.bool, torch.complex64])
def test_every_dtype(shipped: Shipped, dtype: torch.dtype) -> None:
    x = normal(dtype)((4, 70))
    assert_same(shipped, "cumsum", x, 1, scale=10)
    if not dtype.is_complex:
        assert_same(shipped, "cummax", x, 0)


# Sizes, the dimension that is scanned, and the kernel that the host takes for them.
LONG: dict[str, tuple[tuple[int, ...], int, str]] = {
    "one_row": ((70000,), 0, "cumsum_contig_decoupled_float"),
    "many_short_rows": ((5000, 10), 1, "cumsum_tiny_innermost_float"),
    "two_columns": ((5000, 2), 0, "cumsum_strided_decoupled_2_8_float"),
    "sixteen_columns": ((1500, 16), 0, "cumsum_strided_decoupled_16_2_float"),
    "six_columns": ((2500, 6), 0, "cumsum_vec_block_carry_6_float"),
    "forty_columns": ((2000, 40), 0, "cumsum_strided_block_carry_32_float"),
    "rows_of_several_passes": ((2, 9000), 1, "cumsum_innermost_float"),
}


@pytest.mark.parametrize("shape", sorted(LONG))
def test_long_scans(shipped: Shipped, shape: str) -> None:
    sizes, dim, kernel = LONG[shape]
    x = normal(torch.float32, scale=0.1)(sizes)
    assert_near(shipped.run(torch.cumsum, x, dim, kernels=[kernel]), torch.cumsum(x, dim), scale=100)
    x = normal(torch.int64)(sizes)
    assert_near(shipped.run(torch.cumsum, x, dim), torch.cumsum(x, dim))


@pytest.fixture
def deterministic() -> Iterator[None]:
    torch.use_deterministic_algorithms(True)
    yield
    torch.use_deterministic_algorithms(False)


@pytest.mark.usefixtures("deterministic")
@pytest.mark.parametrize(("sizes", "kernel"), [((70000,), "block_carry"), ((1500, 16), "strided_block_carry_16")])
def test_floats_are_split_where_they_must_be_deterministic(
    shipped: Shipped, sizes: tuple[int, ...], kernel: str
) -> None:
    x = normal(torch.float32, scale=0.1)(sizes)
    actual = shipped.run(torch.cumsum, x, 0, kernels=[f"cumsum_{kernel}_float"])
    assert_near(actual, torch.cumsum(x, 0), scale=100)


def test_a_transposed_tensor(shipped: Shipped) -> None:
    x = normal(torch.float32)((40, 300)).t()
    actual = shipped.run(torch.cumsum, x, 1, kernels=["cumsum_innermost_transposed_float"])
    assert_near(actual, torch.cumsum(x, 1), scale=10)
