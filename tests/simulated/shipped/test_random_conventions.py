"""Random numbers of the shipped kernels of each release: their distributions, and that they follow the generator."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from support.shipped_kernels import Shipped, assert_near, on_both, on_device, overload_of

pytestmark = pytest.mark.network

COUNT = 4001
FLOATS = [torch.float32, torch.float16, torch.bfloat16]
INTEGERS = [torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8]


@pytest.fixture(autouse=True)
def seed() -> None:
    torch.manual_seed(7)


def assert_distribution(x: Tensor, mean: float, deviation: float, least: float, most: float) -> None:
    """Mean and deviation within five standard errors, every element inside."""
    values = x.cpu().double()
    assert values.min() >= least
    assert values.max() <= most
    assert abs(values.mean() - mean) < 5 * deviation / math.sqrt(values.numel())
    assert abs(values.std() - deviation) < 0.2 * deviation


# Name -> draws in place, mean, standard deviation, least and largest value.
DRAWS: dict[str, tuple[Callable[[Tensor], Tensor], float, float, float, float]] = {
    "uniform_dist": (lambda x: x.uniform_(-2, 3), 0.5, 5 / math.sqrt(12), -2, 3),
    "normal": (lambda x: x.normal_(1, 2), 1, 2, -12, 14),
    "log_normal": (lambda x: x.log_normal_(0, 0.25), math.exp(0.03125), 0.262, 0.2, 4),
    "exponential": (lambda x: x.exponential_(2), 0.5, 0.5, 0, 9),
    "geometric": (lambda x: x.geometric_(0.3), 1 / 0.3, math.sqrt(0.7) / 0.3, 1, 60),
    "bernoulli_scalar": (lambda x: x.bernoulli_(0.3), 0.3, math.sqrt(0.21), 0, 1),
    "random_int": (lambda x: x.random_(-5, 7), 0.5, math.sqrt(143 / 12), -5, 6),
}


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
@pytest.mark.parametrize("name", sorted(DRAWS))
def test_distributions(shipped: Shipped, name: str, dtype: torch.dtype) -> None:
    draw, *expected = DRAWS[name]
    x = torch.empty(COUNT, dtype=dtype, device="mps")
    assert_distribution(shipped.run(draw, x, kernels=[f"{name}_*"]), *expected)


def test_the_median_of_a_cauchy_distribution(shipped: Shipped) -> None:
    x = shipped.run(torch.empty(COUNT, device="mps").cauchy_, 3, 0.5, kernels=["cauchy_float"])
    assert abs(x.cpu().median() - 3) < 0.1


@pytest.mark.parametrize("dtype", INTEGERS, ids=str)
def test_whole_numbers(shipped: Shipped, dtype: torch.dtype) -> None:
    x = torch.empty(COUNT, dtype=dtype, device="mps")
    assert shipped.run(x.random_, 3, 9, kernels=["random_int_*"]).unique().tolist() == [3, 4, 5, 6, 7, 8]
    everything = torch.iinfo(dtype)
    full = shipped.run(x.random_, kernels=["random_int_*"]).cpu().double()
    assert full.min() >= 0
    assert full.max() > 0.95 * everything.max


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_a_probability_for_each_element(shipped: Shipped, dtype: torch.dtype) -> None:
    p = torch.linspace(0, 1, 5).repeat(1000, 1).to(dtype)
    drawn = shipped.run(torch.bernoulli, p, kernels=["bernoulli_tensor_*"]).cpu().double().mean(0)
    assert (drawn - torch.linspace(0, 1, 5)).abs().max() < 0.07
    assert (drawn[0], drawn[-1]) == (0, 1)


def test_a_probability_that_is_none_is_reported(shipped: Shipped) -> None:
    with pytest.raises(RuntimeError, match="p_in"):
        torch.bernoulli(on_device(torch.tensor([0.5, 1.5])))


def test_a_mean_and_a_deviation_for_each_element(shipped: Shipped) -> None:
    mean, std = torch.full((COUNT,), 3.0), torch.full((COUNT,), 0.5)
    assert_distribution(shipped.run(torch.normal, mean, 2.0), 3, 2, -9, 15)
    assert_distribution(shipped.run(torch.normal, 1.0, std), 1, 0.5, -3, 5)
    assert_distribution(shipped.run(torch.normal, mean, std), 3, 0.5, -1, 7)


def test_a_result_with_gaps_is_filled(shipped: Shipped) -> None:
    x = torch.zeros(200, 100, device="mps")
    view = x.t()[::2]
    shipped.run(view.normal_, 5, 1, kernels=["normal_float", "copy_*"])
    assert_distribution(view, 5, 1, -2, 12)
    assert not x[:, 1::2].any()


def test_the_generator_decides(shipped: Shipped) -> None:
    generator = torch.Generator("mps")
    draws = []
    for _ in range(2):
        generator.manual_seed(3)
        draws.append([torch.rand(6, device="mps", generator=generator).tolist() for _ in range(2)])
    assert draws[0] == draws[1]
    assert not set(draws[0][0]) & set(draws[0][1])


@pytest.mark.parametrize("count", [1, 2, 10, 300, 384])
def test_small_permutations(shipped: Shipped, count: int) -> None:
    drawn = shipped.run(torch.randperm, count, device="mps", kernels=["randperm_small_long"])
    assert sorted(drawn.tolist()) == list(range(count))


def test_large_permutations_are_sorts(shipped: Shipped) -> None:
    assert shipped.reasons(lambda: torch.randperm(1000, device="mps")) == {"a sort of random numbers"}


def test_samples_by_parameters(shipped: Shipped) -> None:
    assert_distribution(shipped.run(torch._standard_gamma, torch.full((COUNT,), 4.0)), 4, 2, 0, 25)
    drawn = shipped.run(torch._sample_dirichlet, torch.ones(2000, 3), kernels=["standard_dirichlet_float"]).cpu()
    assert_near(drawn.sum(-1).to("mps"), torch.ones(2000))
    assert_distribution(drawn[:, 0], 1 / 3, math.sqrt(2 / 36), 0, 1)
    if shipped.release != "2.13.0":
        from mpsmith.simulator.shipped.conventions import random

        assert {"poisson", "binomial"} <= random.PLANNERS.keys()  # which the device of 2.13.0 refuses


def test_gradients_of_samples(shipped: Shipped) -> None:
    x = torch.rand(4, 5) + 0.5
    for a in (x, x.t()):
        actual, expected = on_both(shipped, "_standard_gamma_grad", a, a * 1.1)
        assert_near(actual, expected, 10)
    x = torch.distributions.Dirichlet(torch.ones(4, 3)).sample()
    alpha = torch.rand(4, 3) + 0.5
    total = alpha.sum(-1, keepdim=True).expand_as(alpha)
    actual, expected = on_both(shipped, "_dirichlet_grad", x, alpha, total)
    assert_near(actual, expected, 10)


def test_dropout(shipped: Shipped) -> None:
    x = torch.rand(50, 80) + 1
    for a in (x, x.t()):
        kept, mask = shipped.run(overload_of("native_dropout"), a, 0.25, True, kernels=["dropout_fwd_float"])
        assert abs(mask.cpu().double().mean() - 0.75) < 0.03
        assert_near(kept, a * mask.cpu() / 0.75)
        gradient = torch.rand(kept.shape)
        backward = overload_of("native_dropout_backward")
        assert_near(shipped.run(backward, gradient, mask, 1 / 0.75), gradient * mask.cpu() / 0.75)
    assert shipped.reasons(overload_of("native_dropout"), x, 0.0, True) == {"nothing is dropped"}
