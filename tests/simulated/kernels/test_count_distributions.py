"""Draws of the Poisson and the binomial distribution against their exact distribution functions, and their errors."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

DRAWS = 20_000
FALSE_ALARM_RATE = 1e-6
# Dvoretzky, Kiefer and Wolfowitz: how far an empirical distribution function may be from that of the draws.
LIMIT = math.sqrt(math.log(2 / FALSE_ALARM_RATE) / (2 * DRAWS))

REGISTERED = ("poisson", "binomial")


def distance(draws: Tensor, first: int, probabilities: Tensor) -> float:
    """The Kolmogorov-Smirnov distance of whole numbers from probabilities in float64 of `first`, first + 1, ..."""
    places = (draws.double() - first).long()
    assert int(places.min()) >= 0
    assert int(places.max()) < len(probabilities)
    observed = torch.bincount(places, minlength=len(probabilities)).double().cumsum(0) / draws.numel()
    return float((observed - probabilities.cumsum(0)).abs().max())


def window(mean: float, deviation: float) -> Tensor:
    """The counts within ten deviations, and some more."""
    reach = 10 * deviation + 30
    return torch.arange(max(0, math.floor(mean - reach)), math.ceil(mean + reach), dtype=torch.float64)


@pytest.mark.parametrize("rate", [0.02, 3.3, 9.99, 10.0, 11.7, 150.25, 250_000.5, 12_345_678.0])
def test_poisson_draws_have_the_probabilities_of_the_rate(rate: float) -> None:
    torch.manual_seed(11)
    draws = torch.poisson(torch.full((DRAWS,), rate, device="mps")).cpu()
    k = window(rate, math.sqrt(rate))
    probabilities = (k * math.log(rate) - rate - torch.lgamma(k + 1)).exp()
    assert distance(draws, int(k[0]), probabilities) < LIMIT


@pytest.mark.parametrize(
    ("count", "p"),
    [(1, 0.25), (9, 0.5), (30, 0.3), (20, 0.5), (45, 0.25), (1000, 0.97), (16_000_000, 0.5), (10_000_000, 3e-7)],
)
def test_binomial_draws_have_the_probabilities_of_the_trials(count: int, p: float) -> None:
    torch.manual_seed(12)
    draws = torch.binomial(
        torch.full((DRAWS,), float(count), device="mps"), torch.full((DRAWS,), p, device="mps")
    ).cpu()
    p = float(torch.tensor(p))
    k = window(count * p, math.sqrt(count * p * (1 - p))).clamp(max=count).unique()
    ways = math.lgamma(count + 1) - torch.lgamma(k + 1) - torch.lgamma(count - k + 1)
    probabilities = (ways + k * math.log(p) + (count - k) * math.log1p(-p)).exp()
    assert distance(draws, int(k[0]), probabilities) < LIMIT


@pytest.mark.parametrize("call", [torch.poisson, lambda x, generator=None: torch.binomial(x, x / 60, generator)])
def test_draws_follow_the_seed_of_the_generator_and_advance_it(call: Callable[..., Tensor]) -> None:
    x = torch.full((100,), 20.0, device="mps")
    first, other = (torch.Generator("mps").manual_seed(3) for _ in range(2))
    assert torch.equal(call(x, generator=first), call(x, generator=other))
    assert not torch.equal(call(x, generator=first), call(x))
    default = torch.mps.get_rng_state()
    call(x, generator=first)
    assert torch.equal(default, torch.mps.get_rng_state())
    neighbours = call(x, generator=first)
    assert neighbours.unique().numel() > 5


ERRORS: dict[str, Callable[[str], Any]] = {
    "poisson of integers": lambda d: torch.poisson(torch.ones(3, dtype=torch.int64, device=d)),
    "binomial of halves": lambda d: torch.binomial(*[torch.ones(3, dtype=torch.float16, device=d)] * 2),
    "binomial of integers": lambda d: torch.binomial(*[torch.ones(3, dtype=torch.int64, device=d)] * 2),
    "binomial, dtypes": lambda d: torch.binomial(torch.ones(3, device=d), torch.ones(3, device=d, dtype=torch.float16)),
    "binomial, half a count": lambda d: torch.binomial(
        torch.ones(3, device=d, dtype=torch.float16), torch.ones(3, device=d)
    ),
    "binomial, sizes": lambda d: torch.binomial(torch.ones(3, device=d), torch.ones(4, device=d)),
}


@pytest.mark.parametrize("name", ERRORS)
def test_errors_equal_the_cpu(name: str) -> None:
    with pytest.raises((RuntimeError, ValueError)) as expected:
        ERRORS[name]("cpu")
    with pytest.raises(type(expected.value)) as actual:
        ERRORS[name]("mps")
    assert str(actual.value).split("\n")[0] == str(expected.value).split("\n")[0]


@pytest.mark.parametrize("rate", [-1.0, math.nan])
def test_negative_rate_is_reported(rate: float) -> None:
    with pytest.raises(RuntimeError, match="invalid Poisson rate, expected rate to be non-negative"):
        torch.poisson(torch.tensor([1.0, rate], device="mps")).cpu()
