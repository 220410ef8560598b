"""Variances, logarithmic spaces and losses whose numbers, squares or sums leave the range of float32."""

from __future__ import annotations

import math

import pytest
import torch

LARGEST = 3.38e38  # rounded to bfloat16, too

REGISTERED = ("aten::var", "aten::std", "aten::logspace", "multi_margin_loss")


def variance(name: str, x: torch.Tensor, dim: int) -> torch.Tensor:
    """var or std on the device, through the form with an output."""
    out = torch.empty(0, dtype=x.dtype.to_real(), device="mps")
    return getattr(torch, name)(x.to("mps"), dim, out=out).cpu()  # type: ignore[no-any-return]


@pytest.mark.parametrize("length", [2, 3, 8, 9, 40, 5000])
@pytest.mark.parametrize(
    "numbers",
    [[2e19, 2e19], [1e20, 2e20], [-LARGEST, 1.0], [LARGEST, -LARGEST], [1e-25, 3e-25], [1e-30, 1e30], [0.0, 0.0]],
    ids=str,
)
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.complex64])
def test_squares_beyond_the_range_of_a_float(dtype: torch.dtype, numbers: list[float], length: int) -> None:
    row = torch.tensor(numbers * (length // 2) + numbers[: length % 2])
    x = torch.stack([row, row.flip(0)]).to(dtype)
    for name in ("var", "std"):
        wide = torch.complex128 if dtype.is_complex else torch.float64
        expected = getattr(torch, name)(x.to(wide), 1).to(dtype.to_real())
        torch.testing.assert_close(
            variance(name, x, 1), expected, rtol=1e-6 if dtype is not torch.bfloat16 else 8e-3, atol=0.0
        )


@pytest.mark.parametrize("shape", [(3, 9), (3, 1000), (2, 9001), (1100, 40)])
@pytest.mark.parametrize("mean", [1e4, 3e6])
def test_elements_far_from_zero_keep_the_digits_of_their_distances(shape: tuple[int, int], mean: float) -> None:
    x = torch.randn(shape, generator=torch.Generator().manual_seed(3)) + mean
    expected = x.double().var(1).float()
    for rows, dim in ((x, 1), (x.t().contiguous(), 0)):
        torch.testing.assert_close(variance("var", rows, dim), expected, rtol=4e-7, atol=0.0)


def test_rows_with_an_infinity_or_a_nan_have_no_variance() -> None:
    for odd in (math.inf, -math.inf, math.nan):
        for length in (2, 8, 20, 9000):
            x = torch.ones(length)
            x[length // 2] = odd
            assert variance("var", x, 0).isnan(), (odd, length)


@pytest.mark.parametrize(
    ("start", "end", "base"),
    [(-1e6, 0.0, 10.0), (-1e4, 0.0, 10.0), (1e6, 0.0, 0.5), (0.0, 1e6, 10.0), (-3e38, 0.0, 10.0), (-3e38, 0.0, 1.5)],
)
def test_logarithmic_space_of_exponents_beyond_the_range(start: float, end: float, base: float) -> None:
    for dtype in (torch.float32, torch.bfloat16):
        expected = torch.logspace(start, end, 3, base, dtype=torch.float32).to(dtype)
        assert torch.equal(torch.logspace(start, end, 3, base, dtype=dtype, device="mps").cpu(), expected)


@pytest.mark.parametrize("reduction", ["none", "mean"])
def test_margin_losses_whose_sum_is_beyond_the_range(reduction: str) -> None:
    rows, target = torch.tensor([[0.0, 3e38, 3e38, -3e38]] * 10), torch.zeros(10, dtype=torch.int64)
    expected = torch.full((10,) if reduction == "none" else (), 1.5e38)
    loss = torch.nn.functional.multi_margin_loss(rows.to("mps"), target.to("mps"), reduction=reduction)
    torch.testing.assert_close(loss.cpu(), expected)
