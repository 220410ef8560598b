"""Sorting: by which kernels rows of a length are sorted, in which order they read and write their buffers."""

from __future__ import annotations

import torch
from torch import Tensor

from mpsmith.simulator.shipped.conventions.sorting import PLANNERS
from mpsmith.simulator.shipped.plan import KernelLaunch
from support.planning import NamedKernels, numbers, planned

ALL = NamedKernels("*")


def results(shape: tuple[int, ...], dtype: torch.dtype = torch.float32) -> tuple[Tensor, Tensor]:
    return torch.empty(shape, dtype=dtype), torch.empty(shape, dtype=torch.int64)


def sorted_by(x: Tensor, dim: int = -1, descending: bool = False, stable: bool = True) -> list[KernelLaunch]:
    arguments = {"self": x, "dim": dim, "descending": descending, "stable": stable}
    return planned(PLANNERS["sort.stable"], ALL, results(tuple(x.shape), x.dtype), **arguments)


def names(launches: list[KernelLaunch]) -> list[str]:
    return [launch.kernel for launch in launches]


def test_a_short_row_is_sorted_by_one_threadgroup_as_it_lies() -> None:
    (launch,) = sorted_by(torch.empty(3, 200)[:, ::2], descending=True)
    assert launch.kernel == "sort_block_float_tptg32_stable"
    assert numbers(launch.arguments) == {"size": 100, "strides": [2, 200], "desc": True}
    assert (launch.threads, launch.group) == ((32, 3, 1), (32, 1, 1))
    (launch,) = sorted_by(torch.empty(3, 1000, dtype=torch.int64), stable=False)
    assert launch.kernel == "sort_block_long_tptg256"


def test_a_window_is_written_of_the_sorted_row() -> None:
    x = torch.empty(3, 100)
    arguments = {"self": x, "k": 5, "dim": 1, "largest": True, "sorted": True}
    (launch,) = planned(PLANNERS["topk"], ALL, results((3, 5)), **arguments)
    assert launch.kernel == "sort_block_topk_float_tptg32"
    assert numbers(launch.arguments) == {"size": 100, "strides": [1, 100], "desc": True, "sel": [0, 5]}
    (launch,) = planned(PLANNERS["kthvalue.values"], ALL, results((3,)), self=x, k=7, dim=1, keepdim=False)
    assert launch.arguments["sel"] == [6, 1]
    assert launch.arguments["desc"] is False


def test_long_rows_are_merged_as_keys() -> None:
    block, merge, final = sorted_by(torch.empty(300, 12000), descending=True)
    assert names([block, merge, final]) == [
        "mb_sort_block_fkey_float_tptg1024_u16",
        "mb_merge_uint_tptg1024_u16",
        "mb_merge_final_fkey_float_tptg1024_u16",
    ]
    assert block.threads == (3 * 1024, 300, 1)
    assert (merge.arguments["vi"], merge.arguments["ii"]) == (block.arguments["dv"], block.arguments["di"])
    assert (final.arguments["vi"], final.arguments["ii"]) == (merge.arguments["vo"], merge.arguments["io"])
    assert merge.arguments["dims"] == [12000, 2, 3]
    assert final.arguments["dims"] == [12000, 4, 3]
    assert (merge.arguments["desc"], final.arguments["desc"]) == (False, True)


def test_long_integers_are_merged_as_they_are() -> None:
    launches = sorted_by(torch.empty(300, 5000, dtype=torch.int64))
    assert names(launches) == [
        "mb_sort_block_long_tptg256_u16_stable",
        "mb_merge_long_tptg256_u16",
        "mb_merge_long_tptg256_u16",
        "mb_merge_final_long_tptg256_u16",
    ]


def test_halves_are_sorted_digit_by_digit() -> None:
    x = torch.empty(2, 3000, dtype=torch.float16)
    count, scatter, again, final = sorted_by(x)
    assert names([count, scatter, again, final]) == [
        "radix_count_scan_half_8bit_mb4",
        "radix_scatter_half_8bit_u16",
        "radix_count_scan_half_8bit_mb4",
        "radix_scatter_final_half_8bit_u16",
    ]
    assert (count.threads, count.group) == ((1024, 2, 1), (1024, 1, 1))
    assert count.arguments["dims"] == [3000, 1, 0]
    assert scatter.arguments["flags"] == [False, True]
    assert again.arguments["input"] is scatter.arguments["keys_out"]
    assert final.arguments["keys_in"] is scatter.arguments["keys_out"]
    assert final.arguments["vals_in"] is scatter.arguments["vals_out"]
    assert final.arguments["dims"] == [3000, 1, 8]
    assert final.arguments["flags"] == [False, False]


def test_many_blocks_of_digits_are_summed_by_a_kernel_of_its_own() -> None:
    launches = sorted_by(torch.empty(40, 20000, dtype=torch.float16))
    assert names(launches)[:3] == [
        "radix_count_half_8bit_tptg512",
        "radix_scan",
        "radix_scatter_half_8bit_tptg512_u16",
    ]
    assert numbers(launches[1].arguments) == {"n_entries": 256 * 10}


def test_another_dimension_is_sorted_in_rows_and_moved_back() -> None:
    *launches, values, indices = sorted_by(torch.empty(50, 3), dim=0)
    assert names(launches) == ["mb_sort_block_float_tptg32_stable"]
    assert launches[0].arguments["strides"] == [1, 50]
    assert values.arguments["input"].data_ptr() == launches[0].arguments["dv"].data_ptr()  # type: ignore[attr-defined]
    assert indices.arguments["input"].data_ptr() == launches[0].arguments["di"].data_ptr()  # type: ignore[attr-defined]
