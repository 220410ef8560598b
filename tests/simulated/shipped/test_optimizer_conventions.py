"""Fused optimisers, the gradient scaler and assertions by the shipped kernels of each release."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor

from support.shipped_kernels import Shipped, assert_near, on_device, overload_of

pytestmark = pytest.mark.network

ADAM = {"lr": 0.01, "beta1": 0.9, "beta2": 0.99, "weight_decay": 0.1, "eps": 1e-8, "maximize": False}
SGD = {"weight_decay": 0.1, "lr": 0.01, "dampening": 0.1, "nesterov": True, "maximize": False, "is_first_step": False}
# More tensors and chunks than a launch takes, one of them empty.
SIZES = [(3, 5), (0,), (70000,), *[(7,)] * 33, (65536 * 3 + 1,)]


def tensors(seed: int, sizes: list[tuple[int, ...]]) -> list[Tensor]:
    generator = torch.Generator().manual_seed(seed)
    return [torch.rand(size, generator=generator) + 0.1 for size in sizes]


def assert_updates(shipped: Shipped, name: str, kernel: str, lists: list[list[Tensor]], **keywords: Any) -> None:
    expected = [[tensor.clone() for tensor in group] for group in lists]
    overload_of(name)(*expected, **keywords)
    moved = [[on_device(tensor.clone()) for tensor in group] for group in lists]
    shipped.run(overload_of(name), *moved, **keywords, kernels=[kernel])
    for actual_list, expected_list in zip(moved, expected, strict=True):
        for actual, wanted in zip(actual_list, expected_list, strict=True):
            assert_near(actual, wanted)


@pytest.mark.parametrize("name", ["adam", "adamw"])
@pytest.mark.parametrize("sizes", [SIZES, [(5,)]], ids=["many", "one"])
def test_adam(shipped: Shipped, name: str, sizes: list[tuple[int, ...]]) -> None:
    steps = [torch.tensor(3.0) for _ in sizes]
    lists = [*(tensors(seed, sizes) for seed in range(4)), [], steps]
    assert_updates(shipped, f"_fused_{name}_", f"fused_{name}_float_float", lists, amsgrad=False, **ADAM)


@pytest.mark.parametrize("name", ["adam", "adamw"])
def test_adam_with_largest_squares_and_a_rate_in_a_tensor(shipped: Shipped, name: str) -> None:
    sizes = [(5,), (3, 2)]
    lists = [*(tensors(seed, sizes) for seed in range(5)), [torch.tensor(3.0) for _ in sizes]]
    keywords = {**ADAM, "amsgrad": True, "maximize": True, "lr": torch.tensor(0.02)}
    assert_updates(shipped, f"_fused_{name}_.tensor_lr", f"fused_{name}_amsgrad_float_float", lists, **keywords)


@pytest.mark.parametrize("found_inf", [0.0, 1.0])
def test_a_gradient_scaler_takes_part(shipped: Shipped, found_inf: float) -> None:
    lists = [*(tensors(seed, [(5,)]) for seed in range(4)), [], [torch.tensor(3.0)]]
    scaling = {"grad_scale": torch.tensor(2.0), "found_inf": torch.tensor(found_inf)}
    assert_updates(shipped, "_fused_adam_", "fused_adam_*", lists, amsgrad=False, **ADAM, **scaling)


def test_sgd(shipped: Shipped) -> None:
    lists = [tensors(seed, SIZES) for seed in range(3)]
    assert_updates(shipped, "_fused_sgd_", "fused_sgd_momentum_float", lists, momentum=0.9, **SGD)
    lists[2] = []
    plain = {**SGD, "nesterov": False, "dampening": 0.0}
    assert_updates(shipped, "_fused_sgd_", "fused_sgd_float", lists, momentum=0.0, **plain)


@pytest.mark.parametrize("bad", [False, True])
@pytest.mark.parametrize("sizes", [SIZES, [(5,)]], ids=["many", "one"])
def test_gradients_are_checked_and_unscaled(shipped: Shipped, bad: bool, sizes: list[tuple[int, ...]]) -> None:
    gradients = tensors(0, sizes)
    gradients[-1][-1] = float("inf") if bad else 1
    moved, found_inf = [on_device(gradient) for gradient in gradients], torch.zeros(1, device="mps")
    unscale = overload_of("_amp_foreach_non_finite_check_and_unscale_")
    shipped.run(unscale, moved, found_inf, torch.tensor([0.25]), kernels=["ampNonFiniteCheckAndUnscale*"])
    assert found_inf.item() == bad
    for actual, gradient in zip(moved, gradients, strict=True):
        assert_near(actual, gradient * 0.25)


@pytest.mark.parametrize(("found_inf", "scale", "tracked"), [(0.0, 8.0, 0), (1.0, 2.0, 0)])
def test_the_scale_follows(shipped: Shipped, found_inf: float, scale: float, tracked: int) -> None:
    state = torch.tensor([4.0], device="mps"), torch.tensor([1], dtype=torch.int32, device="mps")
    update = overload_of("_amp_update_scale_")
    shipped.run(update, *state, torch.tensor([found_inf]), 2.0, 0.5, 2, kernels=["ampUpdateScale_float"])
    assert (state[0].item(), state[1].item()) == (scale, tracked)


def test_true_assertions_pass(shipped: Shipped) -> None:
    shipped.run(overload_of("_assert_async"), torch.tensor(3.0), kernels=["assert_async_4"])
    shipped.run(overload_of("_assert_async.msg"), torch.tensor(True), "it holds", kernels=["assert_async_1"])
