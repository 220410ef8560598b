"""Scans: which kernels the sizes of a scan take, and into how many blocks it is split."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from mpsmith.simulator.shipped.call import Call
from mpsmith.simulator.shipped.conventions.scans import PLANNERS
from mpsmith.simulator.shipped.plan import BlitFill, KernelLaunch
from support.planning import NamedKernels, numbers, planned

ALL = NamedKernels("*")


def scanned(overload: str, x: Tensor, dim: int, dtype: torch.dtype | None = None) -> list[KernelLaunch]:
    out = torch.empty(x.shape, dtype=dtype or (x.dtype if x.is_floating_point() else torch.int64))
    return planned(PLANNERS[overload], ALL, out, self=x, dim=dim, dtype=dtype)


def test_rows_have_a_threadgroup_each() -> None:
    (launch,) = scanned("cumsum", torch.empty(3, 5, 300), -1)
    assert launch.kernel == "cumsum_innermost_float"
    assert numbers(launch.arguments) == {"axis_size": 300}
    assert (launch.threads, launch.group) == ((96, 15, 1), (96, 1, 1))


def test_columns_go_by_thirty_two() -> None:
    (launch,) = scanned("cumprod", torch.empty(3, 5, 40), 1)
    assert launch.kernel == "cumprod_outer_float"
    assert numbers(launch.arguments) == {"axis_size": 5, "stride": 40, "stride_blocks": 2}
    assert (launch.threads, launch.group) == ((256, 6, 1), (256, 1, 1))


def test_int_widens_in_the_kernel_and_shorter_integers_before() -> None:
    (launch,) = scanned("cumsum", torch.empty(3, 5, dtype=torch.int32), 1)
    assert launch.kernel == "cumsum_innermost_int_long"
    converting, launch = scanned("cumsum", torch.empty(3, 5, dtype=torch.uint8), 1)
    assert converting.arguments["output"].dtype == torch.int32  # type: ignore[attr-defined]
    assert launch.kernel == "cumsum_innermost_int_long"
    assert launch.arguments["in"] is converting.arguments["output"]


def test_a_result_of_another_stride_is_copied_from_a_dense_one() -> None:
    x, out = torch.empty(3, 5), torch.empty(3, 10)[:, ::2]
    launch, copying = planned(PLANNERS["cumsum"], ALL, out, self=x, dim=1, dtype=None)
    staged = launch.arguments["out"]
    assert isinstance(staged, Tensor)
    assert staged.is_contiguous()
    assert copying.arguments["input"].data_ptr() == staged.data_ptr()  # type: ignore[attr-defined]
    assert copying.arguments["output"].data_ptr() == out.data_ptr()  # type: ignore[attr-defined]


# What a long scan takes where torch is to be deterministic: kernels, blocks, their length.
BLOCKS: dict[str, tuple[Callable[[], Tensor], int, list[str], int, int]] = {
    "one row": (lambda: torch.empty(70000), 0, ["block_reduce", "block_carry"], 66, 1061),
    "two columns": (lambda: torch.empty(5000, 2), 0, ["vec_block_reduce_2", "vec_block_carry_2"], 10, 512),
    "fifteen columns": (
        lambda: torch.empty(1500, 15),
        0,
        ["strided_block_reduce_16", "scan_block_sums", "strided_block_carry_16"],
        2,
        768,
    ),
}


@pytest.mark.parametrize("shape", sorted(BLOCKS))
def test_long_scans_are_split_into_blocks(shape: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch, "are_deterministic_algorithms_enabled", lambda: True)
    make, dim, kernels, blocks, size = BLOCKS[shape]
    launches = scanned("cumsum", make(), dim)
    assert [launch.kernel for launch in launches] == [f"cumsum_{kernel}_float" for kernel in kernels]
    assert launches[0].arguments["num_blocks"] == blocks
    assert launches[0].arguments["block_size"] == size
    assert all(launch.arguments["block_sums"] is launches[0].arguments["block_sums"] for launch in launches)


def test_tiles_of_floats_hand_their_sums_on() -> None:
    x = torch.empty(2, 70000)
    call = Call("cumsum", {"self": x, "dim": 1, "dtype": None}, (torch.empty(2, 70000),))
    *fills, launch = PLANNERS["cumsum"](call, ALL)
    assert isinstance(launch, KernelLaunch)
    assert launch.kernel == "cumsum_contig_decoupled_float"
    assert numbers(launch.arguments) == {"axis_size": 70000, "num_tiles": 18}
    assert launch.threads == (256 * 36, 1, 1)
    counter, aggregates, inclusive = (launch.arguments[n] for n in ("tile_counter", "aggregates", "inclusive"))
    assert fills == [BlitFill(counter), BlitFill(aggregates, 0xFF), BlitFill(inclusive, 0xFF)]  # type: ignore[arg-type]


def test_a_transposed_tensor_is_read_as_it_lies() -> None:
    (launch,) = scanned("cumsum", torch.empty(40, 300).t(), 1)
    assert launch.kernel == "cumsum_innermost_transposed_float"
    assert numbers(launch.arguments) == {"axis_size": 40, "n_cols": 300, "stride_blocks": 10}


def test_extremes_write_values_and_indices() -> None:
    x, values, indices = torch.empty(3, 50), torch.empty(3, 50), torch.empty(3, 50, dtype=torch.int64)
    given = {"self": x, "dim": 1, "values": values, "indices": indices}
    (launch,) = planned(PLANNERS["_cummax_helper"], ALL, (values, indices), **given)
    assert launch.kernel == "cummax_innermost_float"
    assert launch.arguments["out_values"] is values
    assert launch.arguments["out_indices"] is indices
    assert launch.group == (32, 1, 1)
