"""Several parameters of Adagrad in one launch against a step on each of them alone."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from typing import Any

import pytest
import torch
from torch import Tensor

from mpsmith import kernels
from mpsmith.kernels.fused_adagrad import fused_adagrad
from mpsmith.simulator import metal

SHAPES = ((5, 7), (33,), (2, 3, 4), (0,), (), (3,), (16,), (9, 2), (1,), (8, 8))


@pytest.fixture(autouse=True)
def launches(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """The names of the launched kernels."""
    metal.install()
    launched: list[str] = []
    kernel = fused_adagrad._shader.kernel

    def recorded(name: str, device: torch.device) -> Any:
        launched.append(name)
        return kernel(name, device)

    monkeypatch.setattr(fused_adagrad._shader, "kernel", recorded)
    with kernels.use("_fused_adagrad_"):
        yield launched


def lists(*shapes: tuple[int, ...], dtype: torch.dtype = torch.float32) -> list[list[Tensor]]:
    """Parameters, gradients, sums and steps, the same for the same shapes."""
    generator = torch.Generator().manual_seed(len(shapes))
    drawn = [[torch.rand(shape, generator=generator).to("mps", dtype) for shape in shapes] for _ in range(3)]
    return [*drawn, [torch.tensor(float(k + 1), device="mps") for k in range(len(shapes))]]


def step(tensors: list[list[Tensor]], **options: Any) -> None:
    numbers = {"lr": 0.1, "lr_decay": 0.2, "weight_decay": 0.1, "eps": 1e-8, "maximize": False}
    torch._fused_adagrad_(*tensors, **numbers, **options)


def assert_equal(actual: list[list[Tensor]], expected: list[list[Tensor]]) -> None:
    for mine, other in zip(chain(*actual), chain(*expected), strict=True):
        assert torch.equal(mine.cpu(), other.cpu())


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("scaled", [False, True])
def test_several_are_stepped_as_each_alone(dtype: torch.dtype, scaled: bool, launches: list[str]) -> None:
    options = {"grad_scale": torch.tensor(4.0, device="mps")} if scaled else {}
    together, alone = lists(*SHAPES, dtype=dtype), lists(*SHAPES, dtype=dtype)
    with metal.checking("checked"):
        step(together, **options)
    assert len(launches) == 2  # nine parameters with elements
    for row in zip(*alone, strict=True):
        step([[tensor] for tensor in row], **options)
    assert_equal(together, alone)


def test_strided_tensors_and_other_dtypes_have_separate_launches(launches: list[str]) -> None:
    tensors = [a + b for a, b in zip(lists((4, 6), (7,), (3,)), lists((5,), (6,), dtype=torch.float16), strict=True)]
    tensors[0][0] = torch.rand(6, 4).to("mps").t()
    step(tensors)
    assert sorted(launches) == [
        "fused_adagrad_several_float",
        "fused_adagrad_several_half",
        "fused_adagrad_strided_float",
    ]


def test_a_parameter_that_is_given_twice_is_stepped_twice(launches: list[str]) -> None:
    twice, alone = lists((6,)), lists((6,))
    step([tensors * 2 for tensors in twice])
    step(alone)
    step(alone)
    assert_equal(twice, alone)
    assert launches == ["fused_adagrad_dense_float"] * 4


def test_nothing_is_launched_for_nothing(launches: list[str]) -> None:
    step(lists((0,), (0, 3)))
    assert not launches
