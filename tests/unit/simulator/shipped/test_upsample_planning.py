"""Upsampling: which kernel, with which scales, on which grid."""

from __future__ import annotations

import pytest
import torch

from mpsmith.simulator.shipped.conventions.upsample import PLANNERS
from mpsmith.simulator.shipped.plan import BlitFill, Declined, KernelLaunch
from support.fake_kernels import FakeKernels, planned

IN_A_STRUCT = ("inputData", "outputData", "params")
ONE_BY_ONE = ("inputData", "outputData", "input_strides", "output_strides", "input_sizes", "output_sizes", "scales")


def test_scales_go_innermost_first_in_one_struct() -> None:
    x, result = torch.zeros(2, 3, 4, 5), torch.zeros(2, 3, 8, 15)
    kernels = FakeKernels({"upsample_bilinear2d_float": IN_A_STRUCT})
    (step,) = planned(
        PLANNERS, "upsample_bilinear2d", kernels, result, self=x, output_size=[8, 15], align_corners=False
    )
    assert isinstance(step, KernelLaunch)
    assert step.kernel == "upsample_bilinear2d_float"
    assert step.arguments["inputData"] is x
    assert step.arguments["outputData"] is result
    assert step.arguments["params"] == {
        "input_strides": (60, 20, 5, 1),
        "output_strides": (360, 120, 15, 1),
        "input_sizes": (2, 3, 4, 5),
        "output_sizes": (2, 3, 8, 15),
        "scales": [5 / 15, 4 / 8],
        "align_corners": False,
    }
    assert step.threads == (120, 1, 1)


def test_a_release_may_take_them_one_by_one() -> None:
    x, result = torch.zeros(1, 1, 4, 5), torch.zeros(1, 1, 8, 15)
    kernels = FakeKernels({"upsample_bicubic2d_float": ONE_BY_ONE})
    (step,) = planned(PLANNERS, "upsample_bicubic2d", kernels, result, self=x, output_size=[8, 15], align_corners=True)
    assert isinstance(step, KernelLaunch)
    assert step.arguments["scales"] == [4 / 14, 3 / 7]
    assert step.arguments["input_sizes"] == (1, 1, 4, 5)


def test_a_scale_that_is_given_counts_unless_corners_are_aligned() -> None:
    x, result = torch.zeros(1, 1, 4), torch.zeros(1, 1, 6)
    kernels = FakeKernels({"upsample_linear1d_float": IN_A_STRUCT})

    def scales(align: bool) -> object:
        (step,) = planned(
            PLANNERS, "upsample_linear1d", kernels, result, self=x, output_size=[6], align_corners=align, scales=1.6
        )
        assert isinstance(step, KernelLaunch)
        params = step.arguments["params"]
        assert isinstance(params, dict)
        return params["scales"]

    assert scales(False) == [1 / 1.6]
    assert scales(True) == [3 / 5]


def test_gradients_are_added_into_zeros() -> None:
    gradient, result = torch.zeros(2, 3, 4, 6, 8), torch.zeros(2, 3, 2, 3, 4)
    kernels = FakeKernels({"upsample_trilinear_backward_float": ("gradInputData", "gradOutputData", "params")})
    fill, step = planned(
        PLANNERS,
        "upsample_trilinear3d_backward",
        kernels,
        result,
        grad_output=gradient,
        output_size=[4, 6, 8],
        input_size=[2, 3, 2, 3, 4],
        align_corners=False,
    )
    assert isinstance(fill, BlitFill)
    assert fill.target is result
    assert isinstance(step, KernelLaunch)
    assert step.arguments["gradInputData"] is result
    assert step.arguments["gradOutputData"] is gradient
    assert step.threads == (192, 1, 1)


def test_gradients_of_one_dimension_are_gathered_as_of_two() -> None:
    gradient, result = torch.zeros(4, 3, 10), torch.zeros(4, 3, 5)
    kernels = FakeKernels({"upsample_nearest2d_backward_float_u32": ("gradInputData", "gradOutputData", "params")})
    (step,) = planned(
        PLANNERS,
        "upsample_nearest1d_backward",
        kernels,
        result,
        grad_output=gradient,
        output_size=[10],
        input_size=[4, 3, 5],
    )
    assert isinstance(step, KernelLaunch)
    assert step.arguments["params"] == {
        "input_strides": (15, 5, 5, 1),
        "output_strides": (30, 10, 10, 1),
        "input_sizes": (4, 3, 1, 5),
        "output_sizes": (4, 3, 1, 10),
        "scales": [0.5, 1.0],
        "align_corners": False,
    }
    assert (step.threads, step.group) == ((5, 1, 12), (5, 1, 12))


@pytest.mark.parametrize(
    ("overload", "reason"),
    [("upsample_nearest1d", "MPSGraph"), ("upsample_linear1d", "MPSGraph")],
)
def test_the_graph_computes_what_the_release_lacks(overload: str, reason: str) -> None:
    given = {"align_corners": False} if "linear" in overload else {}
    with pytest.raises(Declined, match=reason):
        planned(
            PLANNERS,
            overload,
            FakeKernels({}),
            torch.zeros(1, 1, 6),
            self=torch.zeros(1, 1, 4),
            output_size=[6],
            **given,
        )
