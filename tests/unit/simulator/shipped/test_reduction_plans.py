"""Reductions: which kernels a shape takes in each of the two designs, with which sizes, strides and grids."""

from __future__ import annotations

import pytest
import torch

from mpsmith.simulator.shipped.conventions.argument_reductions import PLANNERS as ARGUMENTS
from mpsmith.simulator.shipped.conventions.layouts import in_order_of_memory, wrapped_dimensions
from mpsmith.simulator.shipped.conventions.reduction_layouts import LayoutPlan, RowLayout, layout_plan
from mpsmith.simulator.shipped.conventions.reductions import PLANNERS
from mpsmith.simulator.shipped.conventions.vector_norms import PLANNERS as NORMS
from mpsmith.simulator.shipped.plan import Declined
from support.planning import NamedKernels, numbers, planned

ENDS = NamedKernels("sum_reduction_float_*", "sum_reduction_half_*", "*_inner_*", "*_outer_*", "*_strided_*")
LAYOUTS = NamedKernels("*_innermost*", "*_outer*", "*_narrow*", "*_flat*", "*_combine_*", "???_reduction_float*")


def test_the_innermost_dimension_has_eight_rows_a_threadgroup() -> None:
    x, out = torch.empty(3, 4, 50), torch.empty(3, 4)
    (launch,) = planned(PLANNERS["sum.dim_IntList"], ENDS, out, self=x, dim=[-1], keepdim=False)
    assert launch.kernel == "sum_reduction_inner_float_float"
    assert numbers(launch.arguments) == {"sizes": [12, 50], "divisor": 0.0}
    assert launch.arguments["input"] is x
    assert (launch.threads, launch.group) == ((512, 1, 1), (256, 1, 1))


def test_the_outermost_dimension_is_walked_by_columns() -> None:
    x, out = torch.empty(7, 5, 8), torch.empty(1, 5, 8)
    (launch,) = planned(PLANNERS["mean.dim"], ENDS, out, self=x, dim=[0], keepdim=True)
    assert launch.kernel == "sum_reduction_outer_float_float"
    assert numbers(launch.arguments) == {"sizes": [7, 40, 1], "divisor": 7.0}
    assert (launch.threads, launch.group) == ((64, 32, 1), (32, 32, 1))


def test_extremes_have_no_divisor() -> None:
    x, out = torch.empty(7, 5, dtype=torch.bool), torch.empty(7, dtype=torch.bool)
    (launch,) = planned(PLANNERS["amax"], ENDS, out, self=x, dim=[1], keepdim=False)
    assert launch.kernel == "max_reduction_inner_char_char"
    assert numbers(launch.arguments) == {"sizes": [7, 5]}


def test_a_transposed_input_is_dense_in_another_order() -> None:
    x, out = torch.empty(5, 8).t(), torch.empty(8)
    (launch,) = planned(PLANNERS["sum.dim_IntList"], ENDS, out, self=x, dim=[1], keepdim=False)
    assert launch.kernel == "sum_reduction_outer_float_float"
    assert launch.arguments["sizes"] == [5, 8, 1]


def test_a_sliced_input_takes_the_kernel_of_any_layout() -> None:
    x, out = torch.empty(5, 8)[:, ::2], torch.empty(4)
    (launch,) = planned(PLANNERS["sum.dim_IntList"], ENDS, out, self=x, dim=[0], keepdim=False)
    assert launch.kernel == "sum_reduction_float_float"
    assert launch.arguments["params"] == {
        "p": 0.0,
        "reduction_size": 5,
        "ndim": 2,
        "input_sizes": [5, 4],
        "input_strides": [8, 2],
        "output_sizes": [1, 4],
        "output_strides": [4, 1],
    }
    assert (launch.threads, launch.group) == ((128, 1, 1), (32, 1, 1))


def test_a_long_sum_of_halves_keeps_floats_between_its_two_passes() -> None:
    x, out = torch.empty(3 * 8192, dtype=torch.float16), torch.empty((), dtype=torch.float16)
    first, second = planned(PLANNERS["mean.dim"], ENDS, out, self=x, dim=None, keepdim=False)
    assert first.kernel == "sum_reduction_half_float"
    params = first.arguments["params"]
    assert isinstance(params, dict)
    assert params["input_sizes"] == [3, 8192]
    assert params.get("p", 0.0) == 0.0
    assert first.threads == (3 * 1024, 1, 1)
    assert second.kernel == "sum_reduction_float_half"
    assert second.arguments["input"] is first.arguments["output"]
    params = second.arguments["params"]
    assert isinstance(params, dict)
    assert params["p"] == 3 * 8192
    assert params["reduction_size"] == 3


def test_a_length_without_divisors_is_reduced_in_one_pass() -> None:
    x, out = torch.empty(10007), torch.empty(())  # a prime
    (launch,) = planned(PLANNERS["sum.dim_IntList"], ENDS, out, self=x, dim=None, keepdim=False)
    assert launch.kernel == "sum_reduction_float_float"
    assert launch.group == (1024, 1, 1)


def test_what_has_no_kernel_is_declined_by_name() -> None:
    x, out = torch.empty(3, 4), torch.empty(3)
    with pytest.raises(Declined, match="MPSGraph"):
        planned(PLANNERS["prod.dim_int"], ENDS, out, self=x, dim=1, keepdim=False)
    with pytest.raises(Declined, match="MPSGraph"):
        planned(PLANNERS["var.correction"], ENDS, out, self=x, dim=[1], correction=None, keepdim=False)
    with pytest.raises(Declined, match="empty input"):
        planned(PLANNERS["sum.dim_IntList"], ENDS, out, self=x[:, :0], dim=[1], keepdim=False)


# Sizes of a dense input, the reduced dimension -> kernel, segments, sizes, threads, group.
DENSE = {
    "short rows": ((100, 20), 1, ("_innermost", 1, [100, 20], (3328, 1, 1), (256, 1, 1))),
    "many short rows": ((8192, 20), 1, ("_innermost_chunk", 1, [8192, 20, 2, 1], (16384, 1, 1), (256, 1, 1))),
    "few long rows": ((2, 8192), 1, ("_innermost_chunk", 128, [2, 8192, 32, 128], (8192, 1, 1), (256, 1, 1))),
    "columns": ((20, 40), 0, ("_outer", 1, [20, 40, 1, 0], (64, 32, 1), (32, 32, 1))),
    "many columns": ((20, 4096), 0, ("_outer_small_dim", 1, [20, 4096, 1, 0], (4096, 1, 1), (32, 1, 1))),
    "few long columns": ((8192, 40), 0, ("_outer", 16, [8192, 40, 16, 0], (64, 512, 1), (32, 32, 1))),
    "very few columns": ((8192, 12), 0, ("_narrow", 12, [8192, 12, 12, 0], (252, 12, 1), (252, 1, 1))),
    "batches of columns": ((3, 500, 48), 1, ("_outer", 1, [500, 48, 1, 0], (64, 32, 3), (32, 32, 1))),
}


@pytest.mark.parametrize("shape", sorted(DENSE))
def test_every_shape_has_its_kernel_in_the_later_design(shape: str) -> None:
    sizes, reduced, expected = DENSE[shape]
    x = torch.empty(sizes)
    plan = layout_plan(x, torch.empty([1 if d == reduced else n for d, n in enumerate(sizes)]))
    assert plan is not None
    assert (plan.kernel, plan.segments, plan.sizes, plan.threads, plan.group) == expected


def test_strides_of_what_is_not_dense_are_given_in_elements() -> None:
    x = torch.empty(6, 10, 9)[:, ::2, :7]
    plan = layout_plan(x, torch.empty(6, 1, 7))
    assert plan is not None
    assert plan == LayoutPlan("_outer", RowLayout(6, 5, 7, (18, 1, 90), False))
    assert plan.strides == [18, 1, 90, 0]


def test_neighbouring_dimensions_are_reduced_as_one() -> None:
    plan = layout_plan(torch.empty(6, 10, 9), torch.empty(6, 1, 1))
    assert plan == LayoutPlan("_innermost", RowLayout.dense(6, 90, 1))
    assert layout_plan(torch.empty(6, 10, 9), torch.empty(1, 10, 1)) is None


def test_segments_are_combined_by_a_second_pass_that_divides() -> None:
    x, out = torch.empty(2, 8192), torch.empty(2)
    first, second = planned(PLANNERS["mean.dim"], LAYOUTS, out, self=x, dim=[1], keepdim=False)
    assert first.kernel == "sum_reduction_innermost_chunk_float_float"
    assert first.arguments["param"] == 0.0
    assert second.kernel == "sum_reduction_innermost_float_float"
    assert numbers(second.arguments) == {"sizes": [2, 128], "param": 8192.0}
    assert second.arguments["input"] is first.arguments["output"]


def test_kernels_of_2_14_have_other_names_sizes_and_parameters() -> None:
    kernels = NamedKernels("*_reduction_float_float", "*_narrow_*", "*_inner_*")
    first, second = planned(
        PLANNERS["mean.dim"], kernels, torch.empty(12), self=torch.empty(8192, 12), dim=[0], keepdim=False
    )
    assert first.kernel == second.kernel == "sum_reduction_narrow_float_float"
    assert numbers(first.arguments) == {"sizes": [8192, 12, 1, 12], "divisor": 0.0}
    assert numbers(second.arguments) == {"sizes": [12, 12, 1, 1], "divisor": 8192.0}
    (launch,) = planned(PLANNERS["amax"], kernels, torch.empty(100), self=torch.empty(100, 20), dim=[1], keepdim=False)
    assert launch.kernel == "max_reduction_inner_float_float"
    assert numbers(launch.arguments) == {"sizes": [100, 20]}


def test_partial_variances_take_three_floats_each() -> None:
    x, out = torch.empty(2 * 8192), torch.empty(())
    first, second = planned(PLANNERS["var.correction"], LAYOUTS, out, self=x, dim=None, correction=0, keepdim=False)
    assert (first.kernel, second.kernel) == ("var_reduction_flat_float_float3", "var_reduction_float3_float")
    partials = second.arguments["input"]
    assert isinstance(partials, torch.Tensor)
    assert (partials.numel(), partials.element_size()) == (2, 16)
    params = second.arguments["params"]
    assert isinstance(params, dict)
    assert (params["p"], params["reduction_size"]) == (0.0, 2)


def test_indices_of_the_best_of_each_segment_are_compared() -> None:
    x, out = torch.empty(3, 5000), torch.empty(3, dtype=torch.int64)
    first, second = planned(ARGUMENTS["argmax"], LAYOUTS, out, self=x, dim=1, keepdim=False)
    assert first.kernel == "argmax_reduction_innermost_p1_float"
    assert first.arguments["sizes"] == [27, 556, 9, 5000]
    assert second.kernel == "argmax_reduction_combine_float"
    assert second.arguments["sizes"] == [3, 9, 1, 9]
    assert second.arguments["input"] is first.arguments["val_out"]
    assert second.arguments["idx_in"] is first.arguments["idx_out"]
    assert second.arguments["output"].shape == (3, 1)  # type: ignore[attr-defined]


def test_the_index_in_a_whole_tensor_counts_as_if_it_were_contiguous() -> None:
    x, out = torch.arange(6.0).view(2, 3).t(), torch.empty((), dtype=torch.int64)
    kernels = NamedKernels("argmin_reduction_float_long")
    (launch,) = planned(ARGUMENTS["argmin"], kernels, out, self=x, dim=None, keepdim=False)
    given = launch.arguments["input"]
    assert isinstance(given, torch.Tensor)
    assert given.tolist() == [0, 3, 1, 4, 2, 5]


def test_a_norm_has_as_many_threads_as_elements() -> None:
    x, out = torch.empty(4, 5), torch.empty(4)
    kernels = NamedKernels("norm_float_float", "norm_l2_reduction_inner_float_float")
    (launch,) = planned(NORMS["linalg_vector_norm"], kernels, out, self=x, ord=3, dim=[1], keepdim=False)
    assert (launch.kernel, launch.threads, launch.group) == ("norm_float_float", (20, 1, 1), (5, 1, 1))
    (launch,) = planned(NORMS["norm.out"], kernels, out, self=x, p=None, dim=[1], keepdim=False)
    assert launch.kernel == "norm_l2_reduction_inner_float_float"


def test_dimensions_are_wrapped_and_none_is_all() -> None:
    assert wrapped_dimensions([-1, 0], 3) == [0, 2]
    assert wrapped_dimensions([], 3) == wrapped_dimensions(None, 3) == [0, 1, 2]
    assert wrapped_dimensions(-1, 0) == []


def test_order_of_memory_is_found_where_it_is_dense() -> None:
    x = torch.empty(2, 3, 4).permute(2, 0, 1)
    ordered, output = in_order_of_memory(x, torch.empty(4, 1, 3))
    assert (ordered.shape, output.shape) == ((2, 3, 4), (1, 3, 4))
    sliced = torch.empty(4, 4)[:, ::2]
    assert in_order_of_memory(sliced, sliced)[0] is sliced
