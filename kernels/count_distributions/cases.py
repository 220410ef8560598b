"""The calls that verify and time the family."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import torch

from ...audit.judging.randomness import generators_as_before
from ..verification.calls import KernelCall
from ..verification.inputs import SHAPES, values
from ..verification.workload import Workload

_DRAWS = 1500
_RATES = (0.02, 0.7, 4.0, 9.99, 10.0, 37.5, 700.0, 60_000.0)
# The numbers of trials, and the probabilities of success.
_TRIALS = (
    (1.0, 0.3),
    (7.0, 0.5),
    (40.0, 0.05),
    (40.0, 0.5),
    (25.0, 0.4),
    (1000.0, 0.93),
    (5.5, 0.5),
    (1e7, 0.25),
    (1e6, 2e-6),
)


def _rates(dtype: torch.dtype) -> Iterator[tuple[Any, ...]]:
    for shape in SHAPES:
        yield (values(shape, dtype, 20.0).abs(),)
    yield (torch.zeros(5, dtype=dtype),)


def _equal_rates(dtype: torch.dtype) -> Iterator[tuple[Any, ...]]:
    """Enough draws of each rate to compare their distribution."""
    for rate in _RATES:
        yield (torch.full((_DRAWS // 30, 30), rate, dtype=dtype),)


def _trials(dtype: torch.dtype) -> Iterator[tuple[Any, ...]]:
    for shape in SHAPES:
        yield values(shape, dtype, 30.0).abs().floor(), torch.sigmoid(values(shape, dtype))
    yield torch.full((3, 1), 9.0, dtype=dtype), torch.full((4,), 0.5, dtype=dtype)
    yield torch.tensor([5.0, -3, 2.5, 4, 4], dtype=dtype), torch.tensor([math.nan, 0.5, 1, -1, 0], dtype=dtype)


def _equal_trials(dtype: torch.dtype) -> Iterator[tuple[Any, ...]]:
    for count, probability in _TRIALS:
        shape = (_DRAWS // 30, 30)
        yield torch.full(shape, count, dtype=dtype), torch.full(shape, probability, dtype=dtype)


def _poisson(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
    """Whether the draws are counts, repeat with the seed, and differ in the next call."""
    with generators_as_before():  # the compared results do not depend on the draws
        torch.manual_seed(5)
        y = torch.poisson(x)
        later = torch.poisson(x)
        torch.manual_seed(5)
        again = torch.poisson(x)
    differs = (y != later).any() if x.numel() > 20 else torch.ones((), dtype=torch.bool, device=x.device)
    return torch.isfinite(y) & (y >= 0) & (y == y.floor()), (y == 0) | (x > 0), y == again, differs


def _binomial(count: torch.Tensor, prob: torch.Tensor) -> tuple[torch.Tensor, ...]:
    """Whether the draws are counts and repeat with the seed, and the draws that do not depend on chance."""
    with generators_as_before():
        torch.manual_seed(5)
        y = torch.binomial(count, prob)
        torch.manual_seed(5)
        again = torch.binomial(count, prob)
    certain = ~((prob > 0) & (prob < 1) & (count > 0))
    in_range = (y >= 0) & (y <= count) & (y == y.floor())
    equal = (y == again) | y.isnan()
    return in_range | certain, equal, torch.where(certain, y, torch.zeros_like(y))


CASES = (
    KernelCall("poisson", ("aten::poisson",), _poisson, _rates),
    KernelCall("poisson", ("aten::poisson",), torch.poisson, _equal_rates, variant="draws", distribution=True),
    KernelCall("binomial", ("aten::binomial",), _binomial, _trials, (torch.float32,)),
    KernelCall(
        "binomial",
        ("aten::binomial",),
        torch.binomial,
        _equal_trials,
        (torch.float32,),
        variant="draws",
        distribution=True,
    ),
)


def _timed_rates(elements: int) -> tuple[torch.Tensor]:
    """Small and large rates, so that both algorithms run."""
    return (torch.rand(elements) * 50,)


WORKLOAD = Workload("aten::poisson", torch.poisson, _timed_rates)
