"""Normalizations, searches in sorted rows and products of vectors: kernels, buffers and numbers of each launch."""

from __future__ import annotations

import pytest
import torch

from mpsmith.simulator.shipped.conventions.bucketing import PLANNERS as SEARCHES
from mpsmith.simulator.shipped.conventions.normalizations import PLANNERS
from mpsmith.simulator.shipped.conventions.vectors import PLANNERS as VECTORS
from mpsmith.simulator.shipped.plan import Declined
from support.planning import NamedKernels, numbers, planned

FIRST = NamedKernels("layer_norm_looped_float", "layer_norm_single_row_float")
LATER = NamedKernels("layer_norm_*_i32_float")
ALL = NamedKernels("*")


def layer_norm_of(length: int) -> tuple[tuple[torch.Tensor, ...], dict[str, object]]:
    x, statistics = torch.empty(3, length), (torch.empty(3, 1), torch.empty(3, 1))
    given = {"input": x, "normalized_shape": [length], "weight": torch.empty(length), "bias": None, "eps": 1e-5}
    return (torch.empty(3, length), *statistics), given


def test_a_row_is_normalized_by_a_threadgroup() -> None:
    results, given = layer_norm_of(200)
    (launch,) = planned(PLANNERS["native_layer_norm"], FIRST, results, **given)
    assert launch.kernel == "layer_norm_single_row_float"
    assert (launch.threads, launch.group) == ((192, 1, 1), (64, 1, 1))
    expected = {"axis_size": 200, "epsilon": 1e-5, "use_weight": 1, "use_bias": 0, "bias": None}
    assert numbers(launch.arguments) == expected
    assert launch.arguments["meanOut"] is results[1]
    assert launch.arguments["rstdTensor"] is results[2]


def test_a_long_row_is_walked_in_a_loop_and_later_kernels_have_no_flags() -> None:
    results, given = layer_norm_of(5000)
    (launch,) = planned(PLANNERS["native_layer_norm"], LATER, results, **given)
    assert launch.kernel == "layer_norm_looped_i32_float"
    assert launch.group == (1024, 1, 1)
    assert "use_weight" not in launch.arguments


def test_statistics_of_another_dtype_are_declined() -> None:
    results, given = layer_norm_of(8)
    with pytest.raises(Declined, match="another dtype"):
        planned(PLANNERS["native_layer_norm"], ALL, (results[0], results[1].double(), results[2]), **given)


GROUPS = {"N": 2, "C": 6, "HxW": 35, "group": 3}


def test_a_group_is_normalized_by_a_threadgroup() -> None:
    x, results = torch.empty(2, 6, 35), (torch.empty(2, 6, 35), torch.empty(2, 3), torch.empty(2, 3))
    given = {"input": x, "weight": torch.empty(6), "bias": None, "eps": 0.5, **GROUPS}
    (launch,) = planned(PLANNERS["native_group_norm"], ALL, results, **given)
    assert launch.kernel == "group_norm_float_float_float_void_uint32_t"
    params = {"HxW": 35, "num_groups": 3, "channels_per_group": 2, "elements_per_group": 70, "eps": 0.5}
    assert launch.arguments["params"] == params
    assert (launch.arguments["mean"], launch.arguments["rstd"]) == (results[1], results[2])
    assert (launch.threads, launch.group) == ((6 * 32, 1, 1), (32, 1, 1))


def test_the_gradient_that_nobody_asked_for_is_thrown_away() -> None:
    x, statistics = torch.empty(2, 6, 35), torch.empty(2, 3)
    given = {"grad_out": torch.empty(2, 6, 35), "input": x, "mean": statistics, "rstd": torch.empty(2, 3)}
    by_bias = torch.empty(6)
    masked = {"weight": torch.empty(6), "output_mask": [False, False, True], **GROUPS}
    (launch,) = planned(PLANNERS["native_group_norm_backward"], ALL, by_bias, **given, **masked)
    assert launch.kernel == "group_norm_backward_affine_float_float_float_uint32_t"
    assert launch.arguments["dbeta"] is by_bias
    assert launch.arguments["dgamma"] is not by_bias
    assert launch.arguments["params"]["N_times_HxW"] == 70  # type: ignore[index]
    assert launch.threads == (6 * 32, 1, 1)


def test_numbers_are_searched_for_a_grid_apart() -> None:
    sorted_rows, x, out = torch.empty(3, 20), torch.empty(3, 7), torch.empty(3, 7, dtype=torch.int32)
    given = {"sorted_sequence": sorted_rows, "self": x, "right": False, "side": "right", "sorter": None}
    (launch,) = planned(SEARCHES["searchsorted.Tensor"], ALL, out, **given)
    assert launch.kernel == "searchsorted_float_int"
    assert launch.arguments["data_in"] is x
    assert launch.arguments["data_bd"] is sorted_rows
    expected = {"idim_in": 7, "idim_bd": 20, "numel_in": 21, "right": 1, "is_1d_boundaries": 0}
    assert numbers(launch.arguments) == expected
    assert launch.threads == (21, 1, 1)
    (launch,) = planned(
        SEARCHES["bucketize.Scalar"],
        ALL,
        torch.empty((), dtype=torch.int64),
        self=2,
        boundaries=torch.empty(5),
        right=False,
    )
    assert launch.arguments["data_in"].tolist() == 2.0  # type: ignore[attr-defined]


def test_a_product_steps_from_component_to_component() -> None:
    a, b, out = torch.empty(4, 3, 5), torch.empty(4, 3, 5), torch.empty(4, 3, 5)
    (launch,) = planned(VECTORS["linalg_cross"], ALL, out, self=a, other=b, dim=1)
    assert launch.kernel == "cross_dense_float"
    assert numbers(launch.arguments) == {"dim_stride": 5}
    assert launch.threads == (20, 1, 1)
    (launch,) = planned(VECTORS["linalg_cross"], ALL, out, self=a, other=b[:1], dim=1)
    assert launch.kernel == "cross_strided_float"
    assert launch.arguments["squashed_sizes"] == [4, 5]
    assert launch.arguments["other_strides"] == [0, 5, 1]


def test_renorm_takes_norms_factors_and_a_product() -> None:
    x = torch.empty(4, 5, 6)
    kernels = NamedKernels("norm_float_float", "renorm_float", "mul_*")
    norms, factors, product = planned(VECTORS["renorm"], kernels, torch.empty(4, 5, 6), self=x, p=2, dim=1, maxnorm=3)
    assert norms.kernel == "norm_float_float"
    assert factors.kernel == "renorm_float"
    assert factors.arguments["norm"] is norms.arguments["output"]
    assert factors.arguments["maxnorm"] == 3.0
    assert factors.threads == (5, 1, 1)
    assert product.arguments["other"] is factors.arguments["factor"]
