"""Random numbers: what parameters, seed and place in the sequence a kernel is given."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
import torch

from mpsmith.simulator.shipped.conventions.random import PLANNERS
from mpsmith.simulator.shipped.plan import Declined, KernelLaunch, Step
from support.fake_kernels import FakeKernels, planned

FILLING = ("output", "params", "seed_base_offset", "numel")


class FakeGenerator:
    """A generator of the device, from which `draws` calls have drawn."""

    def __init__(self, seed: int, draws: int) -> None:
        self.seed, self.draws = seed, draws

    def initial_seed(self) -> int:
        return self.seed

    def get_offset(self) -> int:
        return self.draws


def launch(steps: Sequence[Step]) -> KernelLaunch:
    (step,) = steps
    assert isinstance(step, KernelLaunch)
    return step


def drawn(overload: str, kernel: str, dtype: torch.dtype = torch.float32, **arguments: Any) -> KernelLaunch:
    result = torch.zeros(10, dtype=dtype)
    arguments.setdefault("generator", FakeGenerator(5, 1))
    return launch(planned(PLANNERS, overload, FakeKernels({kernel: FILLING}), result, self=result, **arguments))


def test_a_thread_draws_four_numbers() -> None:
    step = drawn("normal_", "normal_float", mean=1.0, std=2.0)
    assert step.arguments["params"] == [1.0, 2.0]
    assert step.arguments["numel"] == 10
    assert step.threads == (3, 1, 1)


def test_of_eight_bytes_a_thread_draws_two() -> None:
    step = drawn("random_.to", "random_int_long", torch.int64, to=7)
    assert step.arguments["params"] == [0, 7]
    assert step.threads == (5, 1, 1)


def test_the_seed_is_the_generators_and_draws_do_not_overlap() -> None:
    first = drawn("uniform_", "uniform_dist_float", generator=FakeGenerator(2**64 - 1, 1))
    third = drawn("uniform_", "uniform_dist_float", generator=FakeGenerator(5, 3))
    assert first.arguments["seed_base_offset"] == [-1, 0]
    assert third.arguments["seed_base_offset"] == [5, 2 * 2**28]


@pytest.mark.parametrize(
    ("overload", "kernel", "dtype", "arguments", "params"),
    [
        ("random_", "random_int_uchar", torch.uint8, {}, [0, 256]),
        ("random_", "random_int_float", torch.float32, {}, [0, 2**24]),
        ("random_.from", "random_int_int", torch.int32, {"from": -3, "to": 4}, [-3, 7]),
        ("random_.from", "random_int_char", torch.int8, {"from": 2, "to": None}, [2, 126]),
        ("random_.from", "random_int_long", torch.int64, {"from": 0, "to": None}, [0, -(2**63)]),
        ("random_.from", "random_int_long", torch.int64, {"from": -(2**63), "to": None}, [0, 0]),
        ("exponential_", "exponential_float", torch.float32, {"lambd": 3.0}, [3.0, 0.0]),
        ("bernoulli_.float", "bernoulli_scalar_bool", torch.bool, {"p": 0.25}, [0.25, 0.0]),
    ],
)
def test_parameters(
    overload: str, kernel: str, dtype: torch.dtype, arguments: dict[str, Any], params: list[float]
) -> None:
    assert drawn(overload, kernel, dtype, **arguments).arguments["params"] == params


def test_a_complex_number_shares_its_variance() -> None:
    result = torch.zeros(10, dtype=torch.complex64)
    generator = FakeGenerator(5, 1)
    step = launch(
        planned(PLANNERS, "normal_", FakeKernels({"normal_float": FILLING}), result, self=result, generator=generator)
    )
    assert step.arguments["params"] == [0.0, pytest.approx(0.70710678)]
    assert step.arguments["numel"] == 20


def test_a_range_that_a_float_does_not_hold_is_declined() -> None:
    with pytest.raises(Declined, match="rounds"):
        drawn("random_.to", "random_int_half", torch.float16, to=60000)


def test_dropout_keeps_and_scales() -> None:
    x, result, mask = torch.zeros(5), torch.zeros(5), torch.zeros(5, dtype=torch.bool)
    kernels = FakeKernels({"dropout_fwd_float": ("output", "mask", "input", *FILLING[1:])})
    with pytest.raises(Declined, match="nothing is dropped"):
        planned(PLANNERS, "native_dropout", kernels, result, mask, input=x, p=0.0, train=True)
    scale = ("grad_input", "grad_output", "mask", "scale")
    kernels = FakeKernels({"dropout_bwd_float": scale})
    step = launch(planned(PLANNERS, "native_dropout_backward", kernels, result, grad_output=x, mask=mask, scale=1.25))
    assert step.arguments["grad_input"] is result
    assert step.arguments["grad_output"] is x
    assert step.arguments["mask"] is mask
    assert step.arguments["scale"] == 1.25
