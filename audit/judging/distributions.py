"""Whether two samples of random numbers can come from one distribution.

The two-sample Kolmogorov–Smirnov test. For two lots of n draws each, n at least 458, the distance D of their
empirical distributions exceeds t * sqrt(2 / n) with a probability of at most 2 * exp(-2 * t * t), whatever the
distribution (F. Wei and R. M. Dudley, Two-sample Dvoretzky–Kiefer–Wolfowitz inequalities, Statistics and Probability
Letters 82, 2012). Draws from a few different distributions, as many from each on both sides, are less spread than
that: the bound holds for them.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

# The chance that a right operator is called wrong by one comparison. An audit makes a few hundred of them.
FALSE_ALARM_RATE = 1e-6
# The bound is proven from here on.
FEWEST_DRAWS = 458


def compare_draws(actual: Tensor, expected: Tensor) -> str:
    """How the distributions differ, or "" if the draws do not show that they do.

    Args:
        actual, expected: as many draws each, of any shape and of one dtype. Fewer than FEWEST_DRAWS show nothing.
    """
    draws = expected.numel()
    if draws < FEWEST_DRAWS or actual.numel() != draws:
        return ""
    distance = kolmogorov_smirnov(_numbers(actual), _numbers(expected))
    limit = math.sqrt(-math.log(FALSE_ALARM_RATE / 2) / 2) * math.sqrt(2 / draws)
    if distance <= limit:
        return ""
    return (
        f"{draws} draws are distributed unlike the CPU's: Kolmogorov–Smirnov distance {distance:.3f} over {limit:.3f}"
    )


def kolmogorov_smirnov(left: Tensor, right: Tensor) -> float:
    """The largest distance between the empirical distribution functions of two vectors of float64."""
    left, right = left.sort().values, right.sort().values
    places = torch.cat([left, right])
    below_left = torch.searchsorted(left, places, right=True) / left.numel()
    below_right = torch.searchsorted(right, places, right=True) / right.numel()
    return float((below_left - below_right).abs().max())


def _numbers(draws: Tensor) -> Tensor:
    """The draws as a vector of float64 that can be sorted: NaN above everything; of complex ones the real part."""
    flat = draws.detach().cpu().flatten()
    flat = (flat.real if flat.is_complex() else flat).to(torch.float64)
    return flat.nan_to_num(nan=math.inf, posinf=torch.finfo(torch.float64).max)
