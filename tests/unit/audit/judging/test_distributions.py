"""Draws are called unlike the CPU's at one distance, which is computed here by hand."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor

from mpsmith.audit.judging.distributions import compare_draws, kolmogorov_smirnov


def with_ones(ones: int, draws: int) -> Tensor:
    """So many draws of zero, but for some ones: `ones / draws` is the distance from zeros alone."""
    return (torch.arange(draws) < ones).double()


def test_the_distance_that_is_too_far_for_8192_draws() -> None:
    # sqrt(-ln(1e-6 / 2) / 2) * sqrt(2 / 8192) = 0.042085, times 8192: 344.76
    assert compare_draws(with_ones(344, 8192), torch.zeros(8192)) == ""
    assert compare_draws(with_ones(345, 8192), torch.zeros(8192)) == (
        "8192 draws are distributed unlike the CPU's: Kolmogorov–Smirnov distance 0.042 over 0.042"
    )


def test_fewer_than_458_draws_show_nothing() -> None:
    assert compare_draws(torch.ones(457), torch.zeros(457)) == ""
    assert compare_draws(torch.ones(458), torch.zeros(458)) != ""


def test_other_numbers_of_draws_show_nothing() -> None:
    assert compare_draws(torch.ones(1000), torch.zeros(1001)) == ""
    assert compare_draws(torch.ones(1000), torch.zeros(500)) == ""


@pytest.mark.parametrize(
    ("left", "right", "distance"),
    [
        ([1, 2, 3], [4, 5, 6], 1.0),
        ([4, 5, 6], [1, 2, 3], 1.0),
        ([3], [1, 2], 1.0),
        ([1, 2], [3], 1.0),
        ([2, 1], [1, 2], 0.0),
        ([1, 1, 1, 2], [1, 2, 2, 2], 0.5),
        ([1, 2, 2, 2], [1, 1, 1, 2], 0.5),
        ([1, 2, 3, 4], [1, 2, 3, 5], 0.25),
    ],
)
def test_the_distance_of_two_lots(left: list[float], right: list[float], distance: float) -> None:
    assert kolmogorov_smirnov(torch.tensor(left).double(), torch.tensor(right).double()) == distance


def test_nan_and_infinity_are_separate_values() -> None:
    nan, infinity, largest = (torch.full((1000,), value) for value in (math.nan, math.inf, 3e38))
    assert compare_draws(nan, nan.clone()) == ""
    assert compare_draws(nan, infinity) != ""
    assert compare_draws(infinity, largest) != ""


def test_of_complex_draws_the_real_part_counts() -> None:
    zeros, ones = torch.zeros(1000), torch.ones(1000)
    assert compare_draws(torch.complex(zeros, ones), torch.complex(zeros, zeros)) == ""
    assert compare_draws(torch.complex(ones, zeros), torch.complex(zeros, zeros)) != ""


def test_draws_of_any_shape_and_dtype_are_compared() -> None:
    assert compare_draws(torch.ones(10, 100, dtype=torch.int32), torch.zeros(1000, dtype=torch.int32)) != ""
    assert compare_draws(torch.ones(10, 100, dtype=torch.bool), torch.ones(1000, dtype=torch.bool)) == ""
