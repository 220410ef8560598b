"""What users reported of mps, out of the very kernels that their release shipped, and gone in the fixed release.

The releases are those of `cause` in registry/known_wrong. Each kernel is launched as torch's host code of its time
does: the conventions of `simulator/shipped` are those of newer releases.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

import pytest
import torch

from mpsmith.audit.releases.wheel.shipped import shipped_library
from mpsmith.registry import known_wrong
from mpsmith.simulator.air.library import AirLibrary

pytestmark = pytest.mark.network

INF, NAN = math.inf, math.nan
LARGEST = torch.finfo(torch.float32).max
ERROR_BUFFER_BYTES = 15364


@cache
def library(release: str) -> AirLibrary:
    return AirLibrary(shipped_library(release), release)


def binary(release: str, kernel: str, first: list[float], other: list[float]) -> torch.Tensor:
    """What a dense kernel of two operands gives."""
    result = torch.empty(len(first))
    arguments = {"out": result, "input": torch.tensor(first), "other": torch.tensor(other)}
    library(release).kernel(kernel).launch(arguments, [len(first)], [len(first)])
    return result


@pytest.mark.parametrize("release", ["2.10.0", "2.13.0", "2.14.0", "2.15.0"])
def test_hypot_of_large_and_infinite_numbers_192507(release: str) -> None:
    result = binary(release, "hypot_dense_float_float", [LARGEST, 1, INF], [1, LARGEST, NAN])
    # What the report shows from a Mac, and what the CPU gives.
    expected = [INF, INF, NAN] if is_wrong(192507, release) else [LARGEST, LARGEST, INF]
    torch.testing.assert_close(result, torch.tensor(expected), rtol=0, atol=0, equal_nan=True)


@pytest.mark.parametrize("release", ["2.8.0", "2.13.0", "2.14.0", "2.15.0"])
def test_division_rounded_down_of_infinities_189243(release: str) -> None:
    first, other = [INF, -INF, INF, 1.0, -1.0, 5.0], [1.0, 1.0, -2.0, -INF, INF, 2.0]
    result = binary(release, "div_floor_dense_float_float", first, other)
    expected = torch.div(torch.tensor(first), torch.tensor(other), rounding_mode="floor")
    assert expected.isnan().tolist() == [True, True, True, False, False, False]
    if is_wrong(189243, release):
        expected = torch.tensor([INF, -INF, -INF, -0.0, -0.0, 2.0])
    torch.testing.assert_close(result, expected, rtol=0, atol=0, equal_nan=True)


@pytest.mark.parametrize("release", ["2.8.0", "2.13.0", "2.14.0", "2.15.0"])
def test_absolute_values_of_large_whole_numbers_190052(release: str) -> None:
    values = torch.tensor([-(2**24 + 1), 2**24 + 1, -(2**24 + 3), -5], dtype=torch.int32)
    result = torch.empty_like(values)
    kernel = library(release).kernel("abs_dense_int_int")
    arguments = {"output": result, "input": values, "numel": len(values)}
    kernel.launch({name: arguments[name] for name in kernel.signature.names}, [4], [4])
    rounded = [16777216, 16777216, 16777220, 5]
    assert result.tolist() == (rounded if is_wrong(190052, release) else values.abs().tolist())


@pytest.mark.parametrize("release", ["2.8.0", "2.13.0", "2.15.0"])
def test_lerp_from_minus_infinity_111374(release: str) -> None:
    assert is_wrong(111374, release)
    start, end, result = torch.tensor([-INF, 1.0]), torch.tensor([1.0, 2.0]), torch.empty(2)
    arguments = {"out": result, "input": start, "other": end, "alpha": 0.5}
    library(release).kernel("lerp_alpha_dense_float_float_float").launch(arguments, [2], [2])
    torch.testing.assert_close(result, torch.tensor([NAN, 1.5]), equal_nan=True)
    torch.testing.assert_close(torch.lerp(start, end, 0.5), torch.tensor([-INF, 1.5]))


@pytest.mark.parametrize("release", ["2.13.0", "2.15.0"])
def test_the_place_of_nan_130295(release: str) -> None:
    cause = known_wrong.load()[130295].cause
    assert cause is not None
    assert cause.part == "MPSGraph"  # the report is older than the kernel, which is right
    result = torch.full((1,), -1)
    sizes, strides = {"__elems": [3, *15 * [0]]}, {"__elems": [1, *15 * [0]]}
    params: dict[str, object] = {"p": 0.0, "reduction_size": 3, "ndim": 1, "input_sizes": sizes}
    params |= {"input_strides": strides, "output_sizes": strides, "output_strides": strides}
    arguments = {"input": torch.tensor([1, NAN, 3]), "output": result, "params": params}
    library(release).kernel("argmax_reduction_float_long").launch(arguments, [32], [32])
    assert result.item() == 1


def attention_error(release: str, query: torch.Tensor, key: torch.Tensor, value: torch.Tensor) -> float:
    """How far the kernel for few queries is from the CPU, given what it takes of the strides."""
    batch, heads, length, width = query.shape
    every = (query, key, value)
    result = torch.empty(batch, heads, length, width)
    by_name: dict[str, object] = {
        "queries": query,
        "keys": key,
        "values": value,
        "out": result,
        "gqa_factor": 1,
        "N": key.shape[2],
        "k_head_seq_stride": [key.stride(1), key.stride(2)],
        "v_head_seq_stride": [value.stride(1), value.stride(2)],
        "qkv_head_strides": [tensor.stride(1) for tensor in every],
        "qkv_seq_strides": [tensor.stride(2) for tensor in every],
        "qkv_batch_strides_heads": [*(tensor.stride(0) for tensor in every), heads],
        "scale": 1 / math.sqrt(width),
        "mask": torch.zeros(1, dtype=torch.bool),
        "mask_strides": [0, 0, 0],
        "has_mask": False,
    }
    kernel = library(release).kernel("sdpa_vector_float_64_64")
    arguments = {name: by_name[name] for name in kernel.signature.names}
    kernel.launch(arguments, [1024 * batch * heads, length, 1], [1024, 1, 1])
    expected = torch.nn.functional.scaled_dot_product_attention(query, key, value)
    return float((result - expected).abs().max())


def permuted(batch: int) -> Iterator[torch.Tensor]:
    """Query, key and value as (batch, heads, length, width) whose heads lie inside their positions."""
    torch.manual_seed(0)
    for length in (4, 8, 8):
        yield torch.randn(batch, length, 3, 64).permute(0, 2, 1, 3)


@pytest.mark.parametrize("release", ["2.8.0", "2.9.1", "2.11.0", "2.12.1"])
def test_attention_with_permuted_tensors_163597(release: str) -> None:
    error = attention_error(release, *permuted(batch=1))
    assert error > 0.1 if is_wrong(163597, release) else error < 1e-5
    assert attention_error(release, *(tensor.contiguous() for tensor in permuted(batch=1))) < 1e-5


@pytest.mark.parametrize("release", ["2.8.0", "2.9.1", "2.11.0", "2.12.1"])
def test_attention_with_permuted_batches_181133(release: str) -> None:
    error = attention_error(release, *permuted(batch=2))
    assert error > 0.1 if is_wrong(181133, release) else error < 1e-5
    assert attention_error(release, *(tensor.contiguous() for tensor in permuted(batch=2))) < 1e-5


@pytest.mark.parametrize("release", ["2.8.0", "2.12.1", "2.13.0", "2.15.0"])
def test_columns_beyond_32_bits_185663(release: str, tmp_path: Path) -> None:
    # Three rows of columns, of which the third begins past 2**32; the file has holes in place of its zeros.
    rows, columns, place = 3, 2**31 - 8, 8192
    path = tmp_path / "columns"
    with path.open("wb") as file:
        file.truncate(2 * rows * columns)
    data = torch.from_file(str(path), shared=True, size=rows * columns, dtype=torch.float16)
    for row in range(rows):
        data[row * columns + place - row] = row + 1
    image = torch.zeros(place + 8, dtype=torch.float16)
    name = next(n for n in ("col2im_kernel_half", "col2im_kernel_half_u64") if n in library(release))
    kernel = library(release).kernel(name)
    wide = name.endswith("_u64")
    by_name: dict[str, object] = {
        "data_col": data,
        "data_im": image,
        "col_batch_stride": rows * columns if wide else rows * columns % 2**32,  # there is one batch: it is not used
        "col_inner_strides": [columns, 1],
        "channels": 1,
        "im_hw": [1, columns + rows - 1],
        "kernel_hw": [1, rows],
        "pad_hw": [0, 0],
        "stride_hw": [1, 1],
        "dilation_hw": [1, 1],
        "col_hw": [1, columns],
        "im_batch_stride": columns + rows - 1,
    }
    # The first threads are enough: each sums up what falls on its element of the image.
    kernel.launch({n: by_name[n] for n in kernel.signature.names}, [place + 8, 1, 1], [8, 1, 1])
    assert image[place] == (3 if is_wrong(185663, release) else 6)
    assert image.count_nonzero() == 1


@pytest.mark.parametrize("release", ["2.10.0", "2.13.0", "2.15.0"])
def test_the_first_index_past_the_end_of_a_table_189971(release: str) -> None:
    assert is_wrong(189971, release)
    bag = embedding_bag(release)
    # The row behind the table, as the report shows from a Mac; the index after that is noticed.
    assert bag(5) == ([15.0, 16.0, 17.0], 0)
    assert bag(6)[1] > 0
    assert bag(4) == ([12.0, 13.0, 14.0], 0)


def embedding_bag(release: str) -> Callable[[int], tuple[list[float], int]]:
    """The sum over one index into a table of five rows that a sixth one follows, and how many errors were noted."""

    def summed(index: int) -> tuple[list[float], int]:
        table, result = torch.arange(18.0).reshape(6, 3)[:5], torch.full((1, 3), -1.0)
        errors = torch.zeros(ERROR_BUFFER_BYTES, dtype=torch.uint8)
        whole = torch.int64
        arguments = {
            "weight": table,
            "indices": torch.tensor([index]),
            "offsets": torch.tensor([0]),
            "per_sample_weights": torch.zeros(1),
            "output": result,
            "offset2bag": torch.zeros(1, dtype=whole),
            "bag_size": torch.zeros(1, dtype=whole),
            "max_indices": torch.zeros(3, dtype=whole),
            "error_buf": errors,
            "params": {
                "weight_strides": {"__elems": [3, 1]},
                "output_strides": {"__elems": [3, 1]},
                "max_indices_strides": {"__elems": [0, 0]},
                "use_per_sample_weights": False,
                "per_sample_weights_stride": 0,
                "num_indices": 1,
                "num_bags": 1,
                "feature_size": 3,
                "num_weights": 5,
                "mode": 0,
                "padding_idx": -1,
            },
        }
        library(release).kernel("embedding_bag_float_long").launch(arguments, [3], [3])
        return result.flatten().tolist(), int(errors[:4].view(torch.int32))

    return summed


def is_wrong(issue: int, release: str) -> bool:
    """Whether the registry says that this release's kernel gives the reported result."""
    cause = known_wrong.load()[issue].cause
    assert cause is not None
    assert cause.wrong_in is not None
    first, last = (order(bound) for bound in cause.wrong_in)
    if first <= order(release) <= last:
        return True
    assert cause.right_from is not None
    assert order(release) >= order(cause.right_from), f"nothing is said about {release}"
    return False


def order(release: str) -> tuple[int, ...]:
    return tuple(map(int, release.split(".")))
