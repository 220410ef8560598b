"""Calls of random overloads with many parameters, and checks of what is certain of their results.

A distribution tells parameters apart that are clearly different. What has a chance of none, a probability of zero or
one, the ends of a range, is checked exactly: by the numbers themselves, or by words that are the same for every correct
generator.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

# How many numbers one call draws: a multiple of 12, so that rows of 2, 3 and 4 fill it.
DRAWN = 1536
FLOATS = ("float32", "float16", "bfloat16")
NUMBERS = ("float32", "float16", "int64", "uint8")
CPU = torch.device("cpu")

# Gives what is certain of the result of a call.
Check = Callable[[Tensor], Any]
# Makes the arguments of a call from a dtype and a number of random numbers.
MakeArguments = Callable[[torch.dtype, int], tuple[Any, ...]]


@dataclass(frozen=True)
class Draw:
    """One call.

    Attributes:
        overload: without its namespace.
        title: its parameters, for people.
        make: makes its arguments.
        check: gives what is certain of its first result; None if only its distribution is compared.
        dtypes: those in which it is called.
        factory: whether the arguments lack a tensor, so that dtype and device are named.
    """

    overload: str
    title: str
    make: MakeArguments
    check: Check | None = None
    dtypes: tuple[str, ...] = FLOATS
    factory: bool = False


def certain(result: Tensor) -> Tensor:
    """There is one right result, number for number."""
    return result.clone()


def values(result: Tensor) -> str:
    """The numbers that were drawn at all, which are few, to three digits."""
    numbers = sorted({f"{number:.3g}" for number in result.flatten().tolist()}, key=float)
    return f"draws {', '.join(numbers)}"


def within(low: float, high: float) -> Check:
    """Whether all numbers are in a closed range; where it has two ends, whether they come near both."""

    def check(result: Tensor) -> str:
        numbers = result.cpu().flatten().double()
        # Of a dtype's numbers the nearest to an end may lie beyond it.
        unit = torch.finfo(result.dtype).eps if result.is_floating_point() else 0.0
        below, above = (unit * abs(end) if abs(end) != float("inf") else 0.0 for end in (low, high))
        inside = bool(((numbers >= low - below) & (numbers <= high + above)).all())
        words = f"all in [{low}, {high}]" if inside else f"some outside [{low}, {high}]"
        margin = (high - low) / 20
        if margin == float("inf"):
            return words
        near = [bool((numbers <= low + margin).any()), bool((numbers >= high - margin).any())]
        return f"{words}, near the ends: {near}"

    return check


def distinct_rows(result: Tensor) -> str:
    """Whether no row has a number twice, and which numbers there are."""
    rows = result.cpu().reshape(-1, result.shape[-1])
    twice = any(len(set(row)) < len(row) for row in rows.tolist())
    return f"{'some row has' if twice else 'no row has'} a number twice; {values(rows)}"


def a_permutation(result: Tensor) -> str:
    """Whether each number below the count is there once."""
    numbers = result.cpu().sort().values.tolist()
    return "a permutation" if numbers == list(range(len(numbers))) else "no permutation"


def rows_sum_to_one(result: Tensor) -> str:
    """Whether each row is a point of the simplex."""
    sums = result.cpu().sum(-1)
    return "rows sum to one" if bool((sums - 1).abs().max() < 1e-4) and bool((result >= 0).all()) else "rows do not"


def whole_channels(result: Tensor) -> str:
    """Whether each channel is kept or dropped as one, and to what."""
    flat = result.cpu().flatten(2)
    whole = bool((flat == flat[..., :1]).all())
    return f"{'whole channels' if whole else 'parts of channels'}; {values(flat)}"


def full(value: float) -> MakeArguments:
    """One tensor of one value."""
    return lambda dtype, count: (torch.full((count,), value, dtype=dtype),)


def alternating(dtype: torch.dtype, count: int, *numbers: float) -> Tensor:
    """A tensor that repeats the numbers."""
    return torch.tensor([numbers[i % len(numbers)] for i in range(count)], dtype=dtype)


def rows(*weights: float) -> MakeArguments:
    """The same row again and again."""
    return lambda dtype, count: (torch.tensor(weights, dtype=dtype).repeat(max(1, count // len(weights)), 1),)


def channels(dtype: torch.dtype, count: int) -> tuple[Any, ...]:
    """Ones in channels of three."""
    return (torch.ones(max(1, count // 12), 4, 3, dtype=dtype),)


def plain(*parameters: Any) -> MakeArguments:
    """Parameters as they are."""
    return lambda dtype, count: parameters


def concatenated(*makers: MakeArguments) -> MakeArguments:
    """The arguments that several give, one after the other."""
    return lambda dtype, count: tuple(argument for make in makers for argument in make(dtype, count))


def filled(overload: str, value: float, check: Check | None, *parameters: Any, **more: Any) -> Draw:
    """A call that gets a tensor of one value, then plain parameters."""
    title = ", ".join(map(str, parameters)) or f"of {value:g}"
    return Draw(overload, title, concatenated(full(value), plain(*parameters)), check, **more)


def _bernoulli() -> Iterator[Draw]:
    for overload in ("bernoulli_.float", "bernoulli.p"):
        for p in (0.0, 1.0):
            yield filled(overload, 0.5, certain, p)
        for p in (0.1, 0.9):
            yield filled(overload, 0.5, values, p)
    for overload in ("bernoulli_.Tensor", "bernoulli.Tensor"):
        yield Draw(overload, "0 and 1", lambda d, n: (*full(0.5)(d, n), alternating(d, n, 0, 1)), certain)
        for p in (0.2, 0.8):
            yield Draw(overload, f"{p}", concatenated(full(0.5), full(p)), values)
    yield Draw("bernoulli", "0 and 1", lambda d, n: (alternating(d, n, 0, 1),), certain)
    yield filled("bernoulli", 0.2, values)


def _continuous() -> Iterator[Draw]:
    positive = within(0, float("inf"))
    for lambd in (0.25, 4.0, 100.0):
        yield filled("exponential_", 0, positive, lambd)
    for median, sigma in ((-3.0, 0.5), (0.0, 5.0)):
        yield filled("cauchy_", 0, None, median, sigma)
    for mean, std in ((-1.0, 0.25), (2.0, 1.0)):
        yield filled("log_normal_", 0, positive, mean, std)
    for overload in ("normal_", "normal_functional"):
        for mean, std in ((-3.0, 1.0), (0.0, 4.0)):
            yield filled(overload, 0, None, mean, std)
        yield filled(overload, 0, certain, 2.0, 0.0)
    yield filled("uniform_", 0, within(-2, -1), -2.0, -1.0)
    yield filled("uniform_", 0, within(0, 8), 0.0, 8.0)
    yield filled("uniform_", 0, certain, 4.0, 4.0)
    yield Draw("normal.Tensor_float", "0.5", lambda d, n: (alternating(d, n, -2.5, 2.5), 0.5))
    yield Draw("normal.Tensor_float", "0", lambda d, n: (alternating(d, n, -3, 3), 0.0), certain)
    yield Draw("normal.float_Tensor", "2, 0.5 and 4.5", lambda d, n: (2.0, alternating(d, n, 0.5, 4.5)))
    yield Draw("normal.float_Tensor", "2, 0", lambda d, n: (2.0, *full(0)(d, n)), certain)
    yield Draw(
        "normal.Tensor_Tensor",
        "-2.5 and 2.5, 0.5 and 4",
        lambda d, n: (alternating(d, n, -2.5, 2.5), alternating(d, n, 0.5, 4)),
    )
    yield Draw("normal.Tensor_Tensor", "-3 and 3, 0", lambda d, n: (alternating(d, n, -3, 3), *full(0)(d, n)), certain)
    yield Draw("normal.float_float", "2, 0.5", lambda d, n: (2.0, 0.5, [n]), factory=True)
    yield Draw("rand", "", lambda d, n: ([n],), within(0, 1), factory=True)
    yield Draw("randn", "", lambda d, n: ([n],), factory=True)
    for alpha in (0.5, 1.0, 5.0):
        yield filled("_standard_gamma", alpha, positive)
    yield Draw("_sample_dirichlet", "0.5, 2, 5", rows(0.5, 2, 5), rows_sum_to_one)
    for overload in ("rrelu_with_noise", "rrelu_with_noise_"):
        yield Draw(
            overload,
            "0.1, 0.2",
            lambda d, n: (*full(-1)(d, n), *full(0)(d, n), 0.1, 0.2, True),
            within(-0.2001, -0.0999),
        )
    yield filled("rrelu", -1, certain, 0.1, 0.3, False)


def _discrete() -> Iterator[Draw]:
    yield filled("random_.to", 0, certain, 1, dtypes=NUMBERS)
    yield filled("random_.to", 0, values, 3, dtypes=NUMBERS)
    yield filled("random_.to", 0, None, 100, dtypes=NUMBERS)
    yield filled("random_.from", 0, values, 2, 6, dtypes=NUMBERS)
    yield filled("random_.from", 0, within(-50, 49), -50, 50, dtypes=("float32", "float16", "int64"))
    yield filled("random_.from", 0, None, 1 << 33, 1 << 40, dtypes=("int64",))
    yield filled("random_", 0, within(0, float("inf")), dtypes=NUMBERS)
    yield filled("geometric_", 0, certain, 1.0, dtypes=("float32", "float16", "int64"))
    for p in (0.05, 0.7):
        yield filled("geometric_", 0, within(1, float("inf")), p, dtypes=("float32", "float16", "int64"))
    yield Draw("randint", "1", lambda d, n: (1, [n]), certain, NUMBERS, factory=True)
    yield Draw("randint", "4", lambda d, n: (4, [n]), values, NUMBERS, factory=True)
    yield Draw("randint.low", "3, 7", lambda d, n: (3, 7, [n]), values, NUMBERS, factory=True)
    yield Draw("randint.low", "2^33, 2^40", lambda d, n: (1 << 33, 1 << 40, [n]), None, ("int64",), factory=True)
    yield filled("randint_like", 0, values, 4, dtypes=NUMBERS)
    yield filled("randint_like.low_dtype", 0, values, 3, 7, dtypes=NUMBERS)
    yield Draw("randperm", "1", lambda d, n: (1,), certain, ("int64", "float32"), factory=True)
    for n in (2, 50):
        yield Draw("randperm", f"{n}", plain(n), a_permutation, ("int64", "float32"), factory=True)
    for rate in (0.5, 4.0, 50.0):
        yield filled("poisson", rate, within(0, float("inf")))
    yield filled("poisson", 0, certain)
    for p in (0.0, 1.0):
        yield Draw("binomial", f"10, {p}", concatenated(full(10), full(p)), certain)
    yield Draw("binomial", "10, 0.3", lambda d, n: (*full(10)(d, n), *full(0.3)(d, n)))
    yield Draw("binomial", "0 and 10, 0.3", lambda d, n: (alternating(d, n, 0, 10), *full(0.3)(d, n)))


def _multinomial() -> Iterator[Draw]:
    kinds: tuple[tuple[tuple[float, ...], int, bool, Check], ...] = (
        ((0, 0.5, 0, 1.5), 4, True, values),
        ((0, 0.5, 0, 1.5), 2, False, distinct_rows),
        ((0.5, 1, 1.5, 2), 4, True, values),
        ((0.5, 1, 1.5, 2), 2, False, values),
        ((10, 20, 30, 40), 1, False, values),
        ((0, 0, 1), 1, True, certain),
        ((0, 0, 1), 1, False, certain),
    )
    for weights, samples, replacement, check in kinds:
        title = f"{weights}, {samples}, {replacement}"
        yield Draw("multinomial", title, concatenated(rows(*weights), plain(samples, replacement)), check)
    yield Draw("multinomial", "one row", lambda d, n: (torch.tensor([1, 2, 0, 4], dtype=d), n, True), values)


def _dropout() -> Iterator[Draw]:
    for overload in ("native_dropout", "dropout", "dropout_", "alpha_dropout"):
        yield filled(overload, 1, values, 0.25, True)
        yield filled(overload, 1, values, 0.8, True)
        yield filled(overload, 1, certain, 0.0, True)
        yield filled(overload, 1, certain, 1.0, True)
        yield filled(overload, 1, certain, 0.5, False)
    for overload in ("feature_dropout", "feature_alpha_dropout"):
        for p, check in ((0.25, whole_channels), (0.0, certain), (1.0, certain)):
            yield Draw(overload, f"{p}", concatenated(channels, plain(p, True)), check)


DRAWS: tuple[Draw, ...] = (*_bernoulli(), *_continuous(), *_discrete(), *_multinomial(), *_dropout())
