"""Padding, windows, flips, ranges and embeddings: which kernel, with which numbers, without running any."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
import torch
from torch import Tensor

from mpsmith.simulator.shipped.conventions import PLANNERS
from mpsmith.simulator.shipped.plan import BlitFill, Declined, KernelLaunch, Step
from support.fake_kernels import FakeKernels, planned


def steps_of(kernels: Sequence[str], overload: str, *results: Tensor, **arguments: Any) -> Sequence[Step]:
    return planned(PLANNERS, overload, FakeKernels(dict.fromkeys(kernels, ())), *results, **arguments)


def launched(step: Step) -> KernelLaunch:
    assert isinstance(step, KernelLaunch)
    return step


def test_padding_counts_dimensions_from_the_innermost() -> None:
    x, result = torch.zeros(2, 3, 4, 5), torch.zeros(2, 3, 6, 9)
    kernels = ["reflection_pad2d_forward_float_i32", "reflection_pad2d_backward_float_i32"]
    (step,) = steps_of(kernels, "reflection_pad2d", result, self=x, padding=[3, 1, 2, 0])
    params = {
        "input_sizes": [5, 4, 1],
        "output_sizes": [9, 6, 1],
        "left_pad": [3, 2, 0],
        "input_strides": [1, 5, 0, 20, 60],
        "output_strides": [1, 9, 0, 54, 162],
        "channels": 3,
    }
    assert launched(step).arguments == {"input": x, "output": result, "params": params}
    assert (launched(step).threads, launched(step).group) == ((3, 6, 6), (3, 6, 6))
    grad = torch.zeros(2, 3, 6, 9)
    arguments = {"grad_output": grad, "self": x, "padding": [3, 1, 2, 0]}
    (step,) = steps_of(kernels, "reflection_pad2d_backward", x, **arguments)
    assert launched(step).arguments == {"grad_output": grad, "grad_input": x, "params": params}
    assert launched(step).threads == (2, 4, 6)
    with pytest.raises(Declined, match="MPSGraph"):
        steps_of([], "reflection_pad2d", result, self=x, padding=[3, 1, 2, 0])


def test_a_constant_is_written_around_what_is_left() -> None:
    kernels = ["constant_pad_nd_dense_float", "constant_pad_nd_float_u32"]
    x, result = torch.arange(6.0).view(2, 3), torch.zeros(5, 4)
    arguments = {"self": x, "pad": [2, -1, 0, 3], "value": 1.0}
    (step,) = steps_of(kernels, "constant_pad_nd", result, **arguments)
    assert launched(step).kernel == "constant_pad_nd_float_u32"  # what is left has gaps
    assert launched(step).arguments["fill_value"] == b"\x00\x00\x80\x3f"
    assert launched(step).arguments["params"] == {
        "output_sizes": [4, 5],
        "input_sizes": [2, 2],
        "input_strides": [1, 3],
        "output_strides": [1, 4],
        "left_pad": [2, 0],
        "ndim": 2,
    }
    assert launched(step).threads == (1, 5, 1)
    (step,) = steps_of(kernels, "constant_pad_nd", torch.zeros(2, 6), self=x, pad=[2, 1])
    assert launched(step).kernel == "constant_pad_nd_dense_float"
    assert launched(step).arguments["params"] == {
        "input_sizes": [3, 1, 1],
        "output_sizes": [6, 1, 1],
        "left_pad": [2, 0, 0],
    }
    assert launched(step).threads == (2, 1, 2)


def test_a_flip_starts_at_the_last_element_and_steps_back() -> None:
    x, result = torch.zeros(3, 4), torch.zeros(3, 4)
    (step,) = steps_of(["flip_32bit"], "flip", result, self=x, dims=[1])
    assert launched(step).kernel == "flip_direct_32bit"
    start = launched(step).arguments["input"]
    assert isinstance(start, Tensor)
    assert start.data_ptr() == x.data_ptr() + 12
    assert launched(step).arguments["input_strides"] == [-4, 16, 0]
    assert launched(step).arguments["output_strides"] == [4, 16, 0]
    assert launched(step).threads == (4, 3, 1)


def test_columns_are_told_width_before_height() -> None:
    x, result = torch.zeros(2, 3, 8, 9), torch.zeros(2, 18, 12)
    windows = {"kernel_size": [3, 2], "dilation": [2, 1], "padding": [1, 2], "stride": [2, 3]}
    (step,) = steps_of(["im2col_float_u32"], "im2col", result, self=x, **windows)
    assert launched(step).arguments == {
        "inputData": x,
        "outputData": result,
        "kernel_dilation": [2, 3, 1, 2],
        "padding_stride": [2, 1, 3, 2],
        "input_strides": [1, 9, 72, 216],
        "output_strides": [1, 12, 216, 4],
        "input_sizes": [9, 8, 3, 2],
    }
    assert launched(step).threads == (12, 3, 2)
    (step,) = steps_of(["col2im_kernel_float_u32"], "col2im", x, self=result, output_size=[8, 9], **windows)
    assert launched(step).arguments["col_hw"] == [3, 4]
    assert launched(step).arguments["im_hw"] == [8, 9]
    assert launched(step).arguments["col_inner_strides"] == [12, 1]
    assert launched(step).threads == (9, 8, 6)


def test_ranges_know_where_they_start_and_how_they_step() -> None:
    (step,) = steps_of(["arange_long_i32"], "arange.start_out", torch.zeros(4).long(), start=5, end=13, step=2)
    assert launched(step).arguments["se"] == {"__elems": [5, 2]}
    (step,) = steps_of(["linspace_half_i32"], "linspace.out", torch.zeros(6).half()[::2], start=0, end=1, steps=3)
    assert launched(step).arguments["v"] == {"__elems": [0.0, 0.5, 1.0]}
    assert launched(step).arguments["p"] == [3, 2, 0]
    kernels = ["linspace_integral_long_i32"]
    (step,) = steps_of(kernels, "linspace.out", torch.zeros(4).long(), start=10, end=-1, steps=4)
    assert launched(step).arguments["params"] == {"__elems": [10, 2**64 - 1, 3, 2]}


def test_gradients_of_an_embedding_are_summed_in_float32() -> None:
    kernels = ["embedding_dense_backward_half_long_32", "copy_identity_dense_castout_float"]
    kernels += ["copy_identity_dense_scalar_half_float"]
    grad, indices, result = torch.zeros(2, 5, 4).half(), torch.zeros(2, 5).long(), torch.zeros(6, 4).half()
    arguments = {"grad_output": grad, "indices": indices, "num_weights": 6, "padding_idx": -1}
    zero, step, _ = steps_of(kernels, "embedding_dense_backward", result, **arguments, scale_grad_by_freq=False)
    sums = launched(step).arguments["grad_weight"]
    assert isinstance(zero, BlitFill)
    assert zero.target is sums
    assert sums.dtype == torch.float32
    assert launched(step).arguments["grad"] is grad
    assert launched(step).arguments["params"] == {
        "outer_sizes": [2, 5],
        "grad_outer_strides": [20, 4],
        "indices_strides": [5, 1],
        "grad_feature_stride": 1,
        "outer_ndim": 2,
        "feature_size": 4,
        "padding_idx": -1,
        "scale_grad_by_freq": False,
    }
    assert launched(step).threads == (40, 1, 1)


def test_a_mean_is_a_sum_divided_by_how_many_there_were() -> None:
    kernels = ["scatter_add_dense_float_long", "fill_scalar_dense_float", "masked_fill_scalar_dense_32bit"]
    kernels += ["eq_dense_scalar_float_float", "eq_dense_scalar_bool_float", "eq_dense_scalar_cast_bool_float"]
    kernels += ["eq_dense_scalar_cast_bool_long", "div_true_dense_float_float", "div_true_dense_float"]
    x, index, source = torch.zeros(3), torch.tensor([0, 0]), torch.ones(2)
    arguments = {"self": x, "dim": 0, "index": index, "src": source, "reduce": "mean"}
    steps = steps_of(kernels, "scatter_reduce_.two", x, **arguments)
    names = [step.kernel for step in steps if isinstance(step, KernelLaunch)]
    assert names[0] == names[3] == "scatter_add_dense_float_long"
    assert names[-2] == "masked_fill_scalar_dense_32bit"
    assert names[-1].startswith("div_true_dense")
    assert launched(steps[0]).arguments["output"] is x
    assert launched(steps[-1]).arguments["out"] is x


def test_a_bags_gradient_needs_the_sizes_that_a_mac_notes() -> None:
    indices, bags, sizes = torch.tensor([1, 2, 2]), torch.tensor([0, 0, 1]), torch.tensor([2, 1])
    arguments = {
        "grad": torch.zeros(2, 4),
        "indices": indices,
        "offset2bag": bags,
        "maximum_indices": torch.empty(0).long(),
        "num_weights": 5,
        "scale_grad_by_freq": False,
        "mode": 0,
        "per_sample_weights": None,
    }
    kernels = ["embedding_bag_backward_float_long"]
    result = torch.zeros(5, 4)
    _, step = steps_of(kernels, "_embedding_bag_dense_backward", result, bag_size=sizes, **arguments)
    assert launched(step).arguments["bag_size"] is sizes
    with pytest.raises(Declined, match="the CPU's form"):
        steps_of(kernels, "_embedding_bag_dense_backward", result, bag_size=torch.zeros_like(sizes), **arguments)
