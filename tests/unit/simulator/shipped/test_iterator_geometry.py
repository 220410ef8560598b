"""The geometry of TensorIterator: its rules, and that iteration combines the elements that broadcasting combines."""

from __future__ import annotations

import itertools

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from mpsmith.simulator.shipped.iterator import broadcast, geometry, geometry_of


def test_a_dense_pair_is_one_run() -> None:
    result = geometry(torch.empty(3, 4), torch.empty(3, 4))
    assert (result.shape, result.strides, result.contiguous) == ((12,), ((4,), (4,)), True)


def test_two_transposed_operands_are_one_run_too() -> None:
    result = geometry(torch.empty(4, 3).t(), torch.empty(4, 3).t())
    assert (result.shape, result.contiguous) == ((12,), True)


def test_dimensions_are_ordered_by_the_first_operand_with_an_order() -> None:
    result = geometry(torch.empty(60, 80), torch.empty(80, 60).t(), torch.empty(60, 80))
    assert result.shape == (80, 60)
    assert result.strides == ((4, 320), (240, 4), (4, 320))
    assert not result.contiguous
    assert not result.inner_contiguous


def test_a_broadcast_operand_does_not_decide_the_order() -> None:
    result = geometry(torch.empty(2, 3), torch.empty(3))
    assert result.shape == (3, 2)
    assert result.strides == ((4, 12), (4, 0))
    assert result.inner_contiguous


def test_strides_are_in_bytes_of_each_operand() -> None:
    result = geometry(torch.empty(2, 3, dtype=torch.int64), torch.empty(2, 5, dtype=torch.float16)[:, :3])
    assert result.strides == ((8, 24), (2, 10))


def test_a_run_of_16_is_worth_an_inner_contiguous_kernel() -> None:
    assert not geometry(torch.empty(2, 15), torch.empty(2, 40)[:, :15]).prefers_inner_contiguous
    assert geometry(torch.empty(2, 16), torch.empty(2, 40)[:, :16]).prefers_inner_contiguous


def test_one_element_is_contiguous_with_any_strides() -> None:
    assert geometry(torch.empty(()), torch.empty(1, 5)[:, 2]).contiguous
    assert geometry(torch.empty(())).shape == ()


def test_a_step_is_not_contiguous() -> None:
    result = geometry(torch.empty(5), torch.empty(10)[::2])
    assert (result.shape, result.strides, result.contiguous) == ((5,), ((4,), (8,)), False)


def test_detects_offsets_beyond_32_bits() -> None:
    assert geometry_of((((2**29,), (1,), 4),)).fits_32_bits
    assert not geometry_of((((2**29 + 1,), (1,), 4),)).fits_32_bits


def test_shapes_that_do_not_broadcast_are_refused() -> None:
    with pytest.raises(ValueError, match="do not broadcast"):
        broadcast([(2, 3), (4,)])


@st.composite
def operands(draw: st.DrawFn) -> list[Tensor]:
    """An output without overlap, and inputs that broadcast to it in any layout."""
    shape = draw(st.lists(st.integers(1, 4), max_size=4))
    inputs = []
    for _ in range(draw(st.integers(1, 2))):
        kept = shape[draw(st.integers(0, len(shape))) :]
        sizes = [1 if draw(st.booleans()) else size for size in kept]
        order = draw(st.permutations(range(len(sizes))))
        step = draw(st.integers(1, 2))
        memory = torch.empty([sizes[d] * step for d in order]).permute([order.index(d) for d in range(len(sizes))])
        inputs.append(memory[tuple(slice(None, None, step) for _ in sizes)])
    order = draw(st.permutations(range(len(shape))))
    out = torch.empty([shape[d] for d in order]).permute([order.index(d) for d in range(len(shape))])
    return [out, *inputs]


@given(operands())
def test_iterates_over_the_elements_that_broadcasting_combines(tensors: list[Tensor]) -> None:
    result = geometry(*tensors)
    walked = {
        tuple(sum(i * s for i, s in zip(index, strides, strict=True)) for strides in result.strides)
        for index in itertools.product(*map(range, result.shape))
    }
    expanded = [t.expand(tensors[0].shape) for t in tensors]
    expected = {
        tuple(4 * sum(i * s for i, s in zip(index, t.stride(), strict=True)) for t in expanded)
        for index in itertools.product(*map(range, tensors[0].shape))
    }
    assert walked == expected
    assert result.numel == tensors[0].numel()
