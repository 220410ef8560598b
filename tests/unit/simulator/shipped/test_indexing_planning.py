"""Indexing: which kernel, with which sizes, strides and offsets, without running any."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
import torch
from torch import Tensor

from mpsmith.simulator.shipped.conventions import PLANNERS
from mpsmith.simulator.shipped.plan import ERROR_BUFFER, BlitCopy, Declined, KernelLaunch, Step
from support.fake_kernels import FakeKernels, planned


def steps_of(kernels: Sequence[str], overload: str, *results: Tensor, **arguments: Any) -> Sequence[Step]:
    return planned(PLANNERS, overload, FakeKernels(dict.fromkeys(kernels, ())), *results, **arguments)


def launched(step: Step) -> KernelLaunch:
    assert isinstance(step, KernelLaunch)
    return step


def is_memory_of(value: object, tensor: Tensor) -> bool:
    """A view may be another object, and other bits; the memory is the same."""
    return isinstance(value, Tensor) and value.data_ptr() == tensor.data_ptr()


def test_index_walks_over_the_result_the_tensor_and_the_indices() -> None:
    x, result = torch.zeros(5, 4, 3), torch.zeros(2, 3, 4)
    first, last = torch.tensor([[1], [2]]), torch.tensor([[0, 1, 2]])
    kernels = ["index_select_32bit", "copy_identity_strided_long_long"]
    *_, step = steps_of(kernels, "index.Tensor", result, self=x, indices=[first, None, last])
    arguments = dict(launched(step).arguments)
    first_index, last_index = arguments.pop("indices")  # type: ignore[misc]
    assert is_memory_of(arguments.pop("output"), result)
    assert is_memory_of(arguments.pop("input"), x)
    assert arguments == {
        "sizes": [4, 6],
        "output_strides": [4, 16],
        "input_strides": [12, 0],
        "indices_strides": [0, 8],
        "index_sizes": [5, 3],
        "index_strides": [48, 4],
        "ndim_nindices_numel": [2, 2, 24, 0],
        "error_buffer": ERROR_BUFFER,
    }
    assert first_index.stride() == last_index.stride()
    assert launched(step).threads == (24, 1, 1)


def test_indices_of_other_strides_are_copied_to_have_the_same() -> None:
    x, result = torch.zeros(5, 4), torch.zeros(2, 3)
    column, row = torch.tensor([[1], [2]]), torch.tensor([[0, 1, 2]])
    kernels = ["index_select_32bit", "copy_identity_strided_long_long"]
    *copies, _ = steps_of(kernels, "index.Tensor", result, self=x, indices=[column, row])
    assert [launched(step).kernel for step in copies] == ["copy_identity_strided_long_long"] * 2


def test_index_put_writes_where_the_indices_lead() -> None:
    x, value, index = torch.zeros(5, 4), torch.zeros(4), torch.tensor([4, 0, 2])
    arguments = {"self": x, "indices": [index], "values": value}
    (step,) = steps_of(["index_put_32bit"], "_index_put_impl_", x, **arguments)
    assert is_memory_of(launched(step).arguments["output"], x)
    assert is_memory_of(launched(step).arguments["input"], value)
    assert launched(step).arguments["output_strides"] == [4, 0]
    assert launched(step).arguments["input_strides"] == [4, 0]
    assert launched(step).arguments["index_strides"] == [16]
    kernels = ["index_put_32bit", "index_put_accumulate_float"]
    (step,) = steps_of(kernels, "_index_put_impl_", x, accumulate=True, **arguments)
    assert launched(step).kernel == "index_put_accumulate_float"


def test_a_mask_costs_three_kernels_more() -> None:
    x, result, mask = torch.zeros(3), torch.zeros(2), torch.tensor([True, False, True])
    kernels = [
        "index_select_32bit",
        "count_nonzero_prefix_sum_bool",
        "prefix_sum_blocks",
        "scatter_nonzero_indices_bool",
    ]
    steps = steps_of(kernels, "masked_select", result, self=x, mask=mask)
    count, offsets, scatter, select = map(launched, steps)
    assert count.arguments["block_sums"] is offsets.arguments["block_sums"]
    assert offsets.arguments["block_offsets"] is scatter.arguments["block_offsets"]
    assert count.arguments["prefix"] is scatter.arguments["prefix"]
    assert scatter.arguments["max_entries"] == 2
    assert (offsets.threads, offsets.group) == ((32, 1, 1), (32, 1, 1))
    (found,) = select.arguments["indices"]  # type: ignore[misc]
    assert is_memory_of(found, scatter.arguments["output"])  # type: ignore[arg-type]


def test_nonzero_of_subnormals_would_have_fewer_rows_on_a_mac() -> None:
    with pytest.raises(Declined, match="subnormal"):
        steps_of([], "nonzero", torch.zeros(2, 1).long(), self=torch.tensor([1.0, 1e-40]))


def test_gather_is_dense_where_only_the_dimension_differs() -> None:
    x, result, index = torch.zeros(2, 5, 3), torch.zeros(2, 4, 3), torch.zeros(2, 4, 3, dtype=torch.int32)
    kernels = ["gather_dense_float_int", "gather_strided_float_int"]
    (step,) = steps_of(kernels, "gather", result, self=x, dim=1, index=index)
    assert launched(step).arguments == {
        "output": result,
        "input": x,
        "index": index,
        "inner_size": 3,
        "output_dim_size": 4,
        "input_dim_size": 5,
        "tid_offset": 0,
        "error_buf": ERROR_BUFFER,
    }
    (step,) = steps_of(kernels, "gather", result[:1], self=x, dim=1, index=index[:1])
    assert launched(step).kernel == "gather_strided_float_int"
    assert launched(step).arguments["sizes"] == [1, 4, 3]
    assert launched(step).arguments["input_strides"] == [15, 3, 1]
    assert launched(step).arguments["ndim_dim"] == [3, 1, 0]


def test_scatter_starts_from_a_copy_unless_it_is_in_place() -> None:
    x, result, index, source = (
        torch.zeros(3, 2),
        torch.zeros(3, 2),
        torch.zeros(1, 2, dtype=torch.int64),
        torch.ones(1, 2),
    )
    kernels = ["scatter_set_dense_float_long", "scatter_set_dense_value_float_long"]
    arguments = {"self": x, "dim": 0, "index": index}
    copy, step = steps_of(kernels, "scatter.src", result, src=source, **arguments)
    assert isinstance(copy, BlitCopy)
    assert is_memory_of(copy.source, x)
    assert is_memory_of(copy.target, result)
    assert launched(step).arguments["output"] is result
    assert launched(step).arguments["src"] is source
    assert launched(step).arguments["index_dim_size"] == 1
    assert launched(step).arguments["output_dim_size"] == 3
    (step,) = steps_of(kernels, "scatter_.value", x, value=1.0, **arguments)
    assert launched(step).arguments["value"] == b"\x00\x00\x80\x3f"


def test_a_reduction_without_self_starts_from_its_neutral_element() -> None:
    x, index, source = (
        torch.zeros(3, dtype=torch.int8),
        torch.zeros(2, dtype=torch.int64),
        torch.ones(2, dtype=torch.int8),
    )
    kernels = ["scatter_set_dense_value_char_long", "scatter_amin_dense_char_long"]
    arguments = {"self": x, "dim": 0, "index": index, "src": source, "reduce": "amin", "include_self": False}
    start, step = steps_of(kernels, "scatter_reduce_.two", x, **arguments)
    assert launched(start).arguments["value"] == b"\x7f"
    assert launched(step).kernel == "scatter_amin_dense_char_long"


def test_int64_extremes_flip_the_signs_around() -> None:
    x, index = torch.zeros(3, dtype=torch.int64), torch.zeros(2, dtype=torch.int64)
    kernels = ["scatter_signbit_xor_long", "scatter_amax_dense_long_long"]
    arguments = {"self": x, "dim": 0, "index": index, "src": index, "reduce": "amax"}
    names = [launched(step).kernel for step in steps_of(kernels, "scatter_reduce_.two", x, **arguments)]
    assert names == ["scatter_signbit_xor_long", "scatter_amax_dense_long_long", "scatter_signbit_xor_long"]


def test_index_fill_takes_a_mask_where_one_in_sixteen_is_filled() -> None:
    kernels = [
        "index_fill_dense_float",
        "index_fill_zero_mask",
        "index_fill_set_mask",
        "index_fill_dense_from_mask_float",
    ]
    x, index = torch.zeros(33, 2), torch.tensor([3, -1])
    (step,) = steps_of(kernels, "index_fill_.int_Scalar", x, self=x, dim=0, index=index, value=2)
    assert launched(step).kernel == "index_fill_dense_float"
    assert launched(step).threads == (4, 1, 1)
    assert {name: launched(step).arguments[name] for name in ("dim_size", "dim_stride", "slice_numel")} == {
        "dim_size": 33,
        "dim_stride": 2,
        "slice_numel": 2,
    }
    x = torch.zeros(3, 32, 2)
    zero, mark, fill = steps_of(kernels, "index_fill_.int_Scalar", x, self=x, dim=1, index=index, value=2)
    assert launched(zero).arguments["mask"] is launched(mark).arguments["mask"] is launched(fill).arguments["mask"]
    assert (launched(fill).threads, launched(fill).group) == ((2, 32, 3), (2, 32, 3))


def test_index_copy_lays_its_grid_over_run_index_and_rest() -> None:
    x, source, index = torch.zeros(3, 5, 2), torch.ones(3, 2, 2), torch.tensor([4, 1], dtype=torch.int32)
    arguments = {"self": x, "dim": 1, "index": index, "source": source}
    (step,) = steps_of(["index_copy_dense_float_int_32"], "index_copy_", x, **arguments)
    assert launched(step).arguments == {
        "output": x,
        "source": source,
        "indices": index,
        "dim_size": 5,
        "inner": 2,
        "indices_numel": 2,
    }
    assert launched(step).threads == (2, 2, 3)


def test_index_select_copies_units_as_wide_as_a_run_allows() -> None:
    kernels = ["index_select_dim_16bit_long", "index_check_bounds_long"]
    kernels += [f"index_select_dim_dense_{bits}bit_long" for bits in (16, 32, 64)]
    index = torch.tensor([1, 0])
    for width, bits in ((4, 64), (2, 32), (3, 16)):
        x, result = torch.zeros(5, width).half(), torch.zeros(2, width).half()
        check, step = steps_of(kernels, "index_select", result, self=x, dim=0, index=index)
        assert launched(check).arguments["dim_size"] == 5
        assert launched(step).kernel == f"index_select_dim_dense_{bits}bit_long"
        assert launched(step).arguments["params"] == {
            "inner": width * 16 // bits,
            "in_dim_size": 5,
            "out_dim_size": 2,
            "index_stride": 1,
        }
        assert launched(step).threads == (width * 16 // bits, 2, 1)
    with pytest.raises(Declined, match="MPSGraph"):
        steps_of([], "index_select", result, self=x, dim=0, index=index)


def test_cat_launches_once_an_input_or_moves_bytes() -> None:
    x, y, result = torch.zeros(2, 3), torch.zeros(2, 1), torch.zeros(2, 4)
    first, second = map(launched, steps_of(["cat_int32_t_float_float"], "cat", result, tensors=[x, y], dim=1))
    assert first.arguments["shared_params"] == second.arguments["shared_params"]
    assert second.arguments["input_params"] == {
        "cat_dim_offset": 3,
        "input_element_offset": 0,
        "input_strides": [1, 1],
        "input_sizes": [2, 1],
    }
    rows = torch.zeros(4, 3)
    copies = steps_of([], "cat", rows, tensors=[x, torch.empty(0), x])
    assert [step.target.storage_offset() for step in copies if isinstance(step, BlitCopy)] == [0, 6]


def test_triangles_are_told_sizes_innermost_first() -> None:
    x, result = torch.zeros(2, 3, 4), torch.zeros(2, 3, 4)
    (step,) = steps_of(["tril_int_float"], "tril", result, self=x, diagonal=-1)
    assert launched(step).arguments == {
        "sizes": [4, 3, 2],
        "k_ndim": [-1, 3],
        "out": result,
        "inp": x,
        "out_strides": [1, 4, 12],
        "inp_strides": [1, 4, 12],
    }
    assert launched(step).threads == (4, 3, 2)
    (step,) = steps_of(["tril_inplace_int_float"], "tril_", x, self=x)
    assert launched(step).kernel == "tril_inplace_int_float"
