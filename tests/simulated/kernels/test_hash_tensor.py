"""Hashes from the bits of elements against those of the CPU, which makes a double of each number."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from mpsmith.kernels.verification.calls import REAL

HALVES = (torch.float16, torch.bfloat16)
ONE = {torch.float16: 0x3C00, torch.bfloat16: 0x3F80}
# Float32, by their bits: zeros, subnormals, the smallest and largest normal numbers, infinities, quiet and other NaNs.
EDGES = (0, 1, 0x7FFFFF, 0x800000, 0x3F800000, 0x40000000, 0x7F7FFFFF, 0x7F800000, 0x7F800001, 0x7FC00123, 0x7FFFFFFF)

REGISTERED = ("aten::hash_tensor.out",)


def hashes(x: Tensor, *dims: int) -> list[int]:
    words: list[int] = torch.hash_tensor(x, dims).view(torch.int64).cpu().reshape(-1).tolist()
    return words


def assert_as_on_the_cpu(x: Tensor, start: int = 0, end: int | None = None, step: int = 1) -> None:
    """The hash of x[start:end:step], a view of `x` on the device as well."""
    assert hashes(x.to("mps")[start:end:step]) == hashes(x[start:end:step])


def floats(bits: list[int]) -> Tensor:
    return torch.tensor(bits, dtype=torch.int64).to(torch.int32).view(torch.float32)


@pytest.mark.parametrize("dtype", HALVES, ids=str)
@pytest.mark.parametrize("others", [0, 7, 8, 15])
def test_all_16_bit_patterns(dtype: torch.dtype, others: int) -> None:
    """Alone, and in 16 bytes or more with ones, which decide whether it is read as one of several normal numbers."""
    patterns = torch.arange(2**16).to(torch.int16).unsqueeze(1)
    ones = torch.full((2**16, others), ONE[dtype], dtype=torch.int16)
    rows = torch.cat([patterns, ones], 1).view(dtype)
    assert hashes(rows.to("mps"), 1) == hashes(rows, 1)


@settings(max_examples=60, deadline=None)
@given(
    numbers=st.lists(st.one_of(st.integers(0, 2**31 - 1), st.sampled_from(EDGES)), min_size=1, max_size=40),
    negative=st.integers(0, 2**40 - 1),
    start=st.integers(0, 7),
)
def test_floats_of_any_bits(numbers: list[int], negative: int, start: int) -> None:
    bits = [number | (negative >> i & 1) << 31 for i, number in enumerate(numbers)]
    assert_as_on_the_cpu(floats([*bits[:start], *bits]), min(start, len(bits)))


@pytest.mark.parametrize("edge", EDGES, ids=hex)
def test_special_float_among_normal_ones(edge: int) -> None:
    """In each place of 16 bytes, and before and behind those that are aligned."""
    for place in range(1, 12):
        numbers = [0x3F9DF3B6 + 977 * i for i in range(11)]
        numbers.insert(place, edge | 1 << 31)
        assert_as_on_the_cpu(floats(numbers), start=1)


@pytest.mark.parametrize("dtype", REAL, ids=str)
def test_every_start_and_an_odd_and_an_even_number_of_elements(dtype: torch.dtype) -> None:
    """Two to five groups share a row, of which threads take none to five times 16 bytes."""
    x = (torch.randn(20011, generator=torch.Generator().manual_seed(1)) * 60).to(dtype)
    for start in range(17):
        for length in (1, 4, 5, 4097, 19990, 19991):
            assert_as_on_the_cpu(x, start, start + length)


@pytest.mark.parametrize("dtype", [torch.float32, *HALVES], ids=str)
@pytest.mark.parametrize("step", [1, 2])
def test_numbers_that_are_not_normal_in_a_row_of_several_groups(dtype: torch.dtype, step: int) -> None:
    for gap in (1, 3, 700):
        x = torch.randn(30_000, generator=torch.Generator().manual_seed(gap)).to(dtype)
        x[::gap] = x[::gap].relu()
        x[5 :: 7 * gap], x[8 :: 11 * gap], x[1 :: 13 * gap] = torch.inf, torch.nan, torch.finfo(dtype).tiny / 8
        assert_as_on_the_cpu(x, 1, None, step)


def test_rows_that_start_anywhere_in_16_bytes() -> None:
    x = torch.randn(70, 37, generator=torch.Generator().manual_seed(2)).half()
    assert hashes(x.to("mps")[:, 2:], 1) == hashes(x[:, 2:], 1)


@pytest.mark.parametrize("start", [0, 1])
def test_any_nonzero_byte_is_true(start: int) -> None:
    """A view: a copy would make ones of them."""
    x = torch.tensor([0, 2, 0] * 33, dtype=torch.uint8).to("mps").view(torch.bool)
    assert hashes(x[start:]) == [1]
