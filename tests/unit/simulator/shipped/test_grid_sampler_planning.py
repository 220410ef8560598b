"""Sampling a grid: which kernel for which mode, and what its gradients need."""

from __future__ import annotations

import torch

from mpsmith.simulator.shipped.conventions.grid_sampler import PLANNERS
from mpsmith.simulator.shipped.plan import BlitFill, KernelLaunch
from support.fake_kernels import FakeKernels, planned

FORWARD = ("output", "input", "grid", "params")


def test_a_point_of_the_grid_has_a_thread() -> None:
    x, grid, result = torch.zeros(2, 3, 5, 6), torch.zeros(2, 4, 7, 2), torch.zeros(2, 3, 4, 7)
    kernels = FakeKernels({"grid_sampler_2d_bicubic_reflection_i32_float": FORWARD})
    (step,) = planned(
        PLANNERS,
        "grid_sampler_2d",
        kernels,
        result,
        input=x,
        grid=grid,
        interpolation_mode=2,
        padding_mode=2,
        align_corners=True,
    )
    assert isinstance(step, KernelLaunch)
    assert step.arguments["input"] is x
    assert step.arguments["grid"] is grid
    assert step.arguments["output"] is result
    assert step.arguments["params"] == {
        "sampler_dims": 2,
        "align_corners": True,
        "output_sizes": (2, 3, 4, 7),
        "output_strides": (84, 28, 7, 1),
        "input_sizes": (2, 3, 5, 6),
        "input_strides": (90, 30, 6, 1),
        "grid_sizes": (2, 4, 7, 2),
        "grid_strides": (56, 14, 2, 1),
    }
    assert step.threads == (56, 1, 1)


def test_the_gradient_of_the_nearest_grid_is_zero() -> None:
    results = torch.zeros(2, 3, 5, 6), torch.zeros(2, 4, 7, 2)
    kernels = FakeKernels({"grid_sampler_2d_backward_nearest_input_i32_float": ("grad_input", "grad_output")})
    steps = planned(
        PLANNERS,
        "grid_sampler_2d_backward",
        kernels,
        *results,
        grad_output=torch.zeros(2, 3, 4, 7),
        input=torch.zeros(2, 3, 5, 6),
        grid=torch.zeros(2, 4, 7, 2),
        interpolation_mode=1,
        padding_mode=0,
        align_corners=False,
        output_mask=[True, True],
    )
    fills, launches = steps[:2], steps[2:]
    assert [step.target for step in fills if isinstance(step, BlitFill)] == list(results)
    assert [step.kernel for step in launches if isinstance(step, KernelLaunch)] == [
        "grid_sampler_2d_backward_nearest_input_i32_float"
    ]


def test_three_dimensions_have_one_kernel_for_both_gradients() -> None:
    gradient, x, grid = torch.zeros(2, 3, 3, 4, 7), torch.zeros(2, 3, 4, 5, 6), torch.zeros(2, 3, 4, 7, 3)
    of_grid = torch.zeros(2, 3, 4, 7, 3)
    kernels = FakeKernels({"grid_sampler_3d_backward_i32_float": ("grad_output", "input", "grid")})
    (step,) = planned(
        PLANNERS,
        "grid_sampler_3d_backward",
        kernels,
        of_grid,
        grad_output=gradient,
        input=x,
        grid=grid,
        interpolation_mode=0,
        padding_mode=0,
        align_corners=False,
        output_mask=[False, True],
    )
    assert isinstance(step, KernelLaunch)
    assert step.arguments["grad_grid"] is of_grid
    params = step.arguments["params"]
    assert isinstance(params, dict)
    assert (params["compute_grad_input"], params["compute_grad_grid"]) == (False, True)
    assert (step.threads, step.group) == ((7, 12, 2), (16, 16, 1))
