"""Products by logarithms against those of whole numbers, for every kind of 64-bit integer."""

from __future__ import annotations

import random
from collections.abc import Sequence
from math import prod

import pytest
import torch

from mpsmith.simulator import metal

# Powers of 2 and their neighbours.
EDGES = sorted({sign * (2**k + d) for sign in (-1, 1) for k in range(64) for d in (-3, -1, 0, 1, 3)})
NUMBERS = [x for x in EDGES if -(2**63) <= x < 2**63]

REGISTERED = ("aten::scatter_reduce.two",)


def products(
    start: Sequence[int], index: Sequence[int], factors: Sequence[int], include_self: bool = True
) -> list[int]:
    x, at, source = (torch.tensor(list(numbers), device="mps") for numbers in (start, index, factors))
    result: list[int] = x.scatter_reduce(0, at, source, "prod", include_self=include_self).tolist()
    return result


def wrapped(x: int) -> int:
    return (x + 2**63) % 2**64 - 2**63


def test_one_factor_is_its_own_product() -> None:
    """The logarithm and the power of each number, one after the other."""
    random_numbers = random.Random(1)
    numbers = NUMBERS + [random_numbers.randrange(-(2**63), 2**63) for _ in range(20_000)]
    assert products([7] * len(numbers), range(len(numbers)), numbers, include_self=False) == numbers


def test_two_factors() -> None:
    """Exponents, of which the sum carries from one word into the next, and wraps."""
    pairs = [(a, b) for a in NUMBERS[::3] for b in NUMBERS[::5]]
    places = [i for i in range(len(pairs)) for _ in range(2)]
    factors = [x for pair in pairs for x in pair]
    assert products([3] * len(pairs), places, factors) == [wrapped(3 * a * b) for a, b in pairs]


@pytest.mark.parametrize("include_self", [True, False])
def test_many_factors_of_few_results(include_self: bool) -> None:
    """In several orders: signs alone, zeros, 63 twos and more, ones, and a result that no index names."""
    several = [
        [2**63 - 25, -5, 3] * 30,
        [-1] * 41,
        [5, -1, 0] * 20,
        [0],
        [2**40, 2**23, 1, -1, 3],
        [2**40, 2**24, -7],
        [2, 6, -2] * 30,
        [1],
        [],
    ]
    pairs = [(place, factor) for place, factors in enumerate(several) for factor in factors]
    random.Random(2).shuffle(pairs)
    start = [11, -12, 13, 14, 15, 16, 17, 18, 19]
    kept = start if include_self else [1] * 8 + [19]
    expected = [wrapped(prod(factors, start=first)) for first, factors in zip(kept, several, strict=True)]
    with metal.checking("schedules"):
        assert products(start, *zip(*pairs, strict=True), include_self=include_self) == expected


def test_an_index_of_int32() -> None:
    x, at, source = (torch.tensor(numbers, device="mps") for numbers in ([1, 2, 3], [2, 0, 2], [5, 7, 11]))
    assert x.scatter_reduce(0, at.int(), source, "prod").tolist() == [7, 2, 165]
