"""Pooling: which kernel, with which windows, and what is left to MPSGraph."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from mpsmith.simulator.shipped.conventions.pooling import PLANNERS
from mpsmith.simulator.shipped.plan import ERROR_BUFFER, BlitFill, Declined, KernelLaunch, Step
from support.fake_kernels import FakeKernels, planned

MAXIMUM = {"max_pool_float": {"input": (), "output": (), "indices": (), "params": ("dims", "pooling_dims")}}
ADAPTIVE = {"max_pool_float": {"input": (), "output": (), "indices": (), "params": ("dims", "adaptive")}}


def params_of(step: Step) -> dict[str, Any]:
    assert isinstance(step, KernelLaunch)
    params = step.arguments["params"]
    assert isinstance(params, dict)
    return params


def test_windows_are_given_one_number_a_dimension() -> None:
    x, result, indices = torch.zeros(2, 5, 9), torch.zeros(2, 2, 4), torch.zeros(2, 2, 4, dtype=torch.int64)
    (step,) = planned(
        PLANNERS,
        "max_pool2d_with_indices",
        FakeKernels(MAXIMUM),
        result,
        indices,
        self=x,
        kernel_size=[3],
        stride=[],
        padding=[1],
    )
    assert isinstance(step, KernelLaunch)
    assert step.arguments["input"] is x
    assert step.arguments["output"] is result
    assert step.arguments["indices"] is indices
    assert params_of(step) == {
        "dims": 3,
        "pooling_dims": 2,
        "input_sizes": (2, 5, 9),
        "input_strides": (45, 9, 1),
        "output_sizes": (2, 2, 4),
        "output_strides": (8, 4, 1),
        "indices_sizes": (2, 2, 4),
        "indices_strides": (8, 4, 1),
        "kernel_size": [3, 3],
        "stride": [3, 3],
        "padding": [1, 1],
        "dilation": [1, 1],
        "return_indices": True,
    }
    assert step.threads == (16, 1, 1)


def test_windows_that_slide_by_one_are_the_graphs() -> None:
    with pytest.raises(Declined, match="MPSGraph"):
        planned(
            PLANNERS,
            "max_pool2d",
            FakeKernels(MAXIMUM),
            torch.zeros(1, 3, 3),
            self=torch.zeros(1, 4, 4),
            kernel_size=[2],
            stride=[1],
        )


def test_without_indices_their_buffer_is_unbound() -> None:
    (step,) = planned(
        PLANNERS,
        "max_pool2d",
        FakeKernels(MAXIMUM),
        torch.zeros(1, 2, 2),
        self=torch.zeros(1, 4, 4),
        kernel_size=[2],
        stride=[],
    )
    assert isinstance(step, KernelLaunch)
    assert step.arguments["indices"] is None
    assert not params_of(step)["return_indices"]


def adaptive(kernels: FakeKernels, before: int, after: int) -> dict[str, Any]:
    results = torch.zeros(1, after, after), torch.zeros(1, after, after, dtype=torch.int64)
    x = torch.zeros(1, before, before)
    (step,) = planned(PLANNERS, "adaptive_max_pool2d", kernels, *results, self=x, output_size=[after, after])
    return params_of(step)


def test_adaptive_windows_have_one_size_until_the_kernel_knows_them() -> None:
    old = adaptive(FakeKernels(MAXIMUM), 10, 4)
    assert (old["kernel_size"], old["stride"]) == ([4, 4], [2, 2])
    assert "adaptive" not in old
    assert adaptive(FakeKernels(ADAPTIVE), 10, 4)["adaptive"]
    with pytest.raises(Declined, match="to a larger size"):
        adaptive(FakeKernels(MAXIMUM), 3, 5)


def test_averages_of_two_dimensions_are_the_graphs_but_for_ceil_mode() -> None:
    kernels = FakeKernels({"avg_pool_float": ("input", "output", "params")})
    x, result = torch.zeros(1, 5, 5), torch.zeros(1, 3, 3)
    with pytest.raises(Declined, match="MPSGraph"):
        planned(PLANNERS, "avg_pool2d", kernels, result, self=x, kernel_size=[2], stride=[])
    (step,) = planned(
        PLANNERS,
        "avg_pool2d",
        kernels,
        result,
        self=x,
        kernel_size=[2],
        stride=[],
        ceil_mode=True,
        divisor_override=3,
    )
    params = params_of(step)
    assert (params["divisor_override"], params["has_divisor_override"], params["count_include_pad"]) == (3, True, True)


def test_unpooling_scatters_into_zeros_and_reports() -> None:
    x, indices, result = torch.zeros(1, 2, 3), torch.zeros(1, 2, 3, dtype=torch.int64), torch.zeros(1, 4, 6)
    kernels = FakeKernels({"max_unpool_float": ("output", "input", "indices", "params", "error_buffer")})
    fill, step = planned(PLANNERS, "max_unpool2d", kernels, result, self=x, indices=indices, output_size=[4, 6])
    assert isinstance(fill, BlitFill)
    assert isinstance(step, KernelLaunch)
    assert step.arguments["output"] is result
    assert step.arguments["input"] is x
    assert step.arguments["error_buffer"] is ERROR_BUFFER
    assert step.threads == (6, 1, 1)


def test_a_result_with_gaps_is_declined_where_zeros_come_first() -> None:
    kernels = FakeKernels({"max_unpool_float": ("output", "input", "indices", "params", "error_buffer")})
    indices = torch.zeros(1, 2, 3, dtype=torch.int64)
    with pytest.raises(Declined, match="set to zero first"):
        planned(
            PLANNERS,
            "max_unpool2d.out",
            kernels,
            torch.zeros(1, 4, 12)[..., ::2],
            self=torch.zeros(1, 2, 3),
            indices=indices,
            output_size=[4, 6],
        )
