"""Layouts as the strided Metal kernels read them, against torch's own indexing."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from mpsmith.kernels.runtime.layout import Layout, broadcast, launch_elements, layout_of, logical_order


def offsets(packed: list[int], element: int, operand: int = 0) -> int:
    """What `struct offsets` of shared/strided.metal computes."""
    dimensions = packed[1]
    sizes = packed[2 : 2 + dimensions]
    strides = packed[2 + dimensions * (1 + operand) :]
    offset = 0
    for size, stride in zip(sizes, strides, strict=False):
        element, position = divmod(element, size)
        offset += position * stride
    return offset


@st.composite
def views(draw: st.DrawFn) -> torch.Tensor:
    """Views of a counting tensor: permuted, sliced, with repeated dimensions."""
    shape = draw(st.lists(st.integers(1, 4), min_size=0, max_size=4))
    x = torch.arange(math.prod(shape)).reshape(shape)
    x = x.permute(draw(st.permutations(range(len(shape)))))
    for d in range(x.dim()):
        x = x[(slice(None),) * d + (slice(draw(st.integers(0, x.shape[d] - 1)), None, draw(st.integers(1, 2))),)]
    if draw(st.booleans()):
        x = x.unsqueeze(0).expand(3, *x.shape)
    return x


@given(views(), views())
def test_every_element_of_all_operands_is_visited_once(x: torch.Tensor, y: torch.Tensor) -> None:
    y = torch.empty_strided(x.shape, [s * 2 for s in x.contiguous().stride()])
    layout = layout_of([x, y])
    seen = [(offsets(layout.packed, e, 0), offsets(layout.packed, e, 1)) for e in range(layout.elements)]
    expected = (
        [
            (
                sum(i * s for i, s in zip(index, x.stride(), strict=True)),
                sum(i * s for i, s in zip(index, y.stride(), strict=True)),
            )
            for index in torch.cartesian_prod(*(torch.arange(n) for n in x.shape)).reshape(-1, x.dim()).tolist()
        ]
        if x.dim()
        else [(0, 0)]
    )
    assert sorted(seen) == sorted(expected)


@given(views())
def test_logical_order_counts_as_a_contiguous_tensor(x: torch.Tensor) -> None:
    packed = logical_order(x)
    memory = torch.empty(0, dtype=x.dtype).set_(x.untyped_storage())
    values = [int(memory[x.storage_offset() + offsets(packed, e)]) for e in range(x.numel())]
    assert values == x.reshape(-1).tolist()


def test_dense_in_any_order_of_dimensions() -> None:
    x = torch.empty(3, 4, 5).permute(2, 0, 1)
    assert layout_of([x, torch.empty_like(x)]).is_dense
    assert not layout_of([x, torch.empty(x.shape)]).is_dense
    assert layout_of([torch.empty(())]).is_dense


def test_fits_32_bits() -> None:
    assert Layout((2**31 - 1,), ((1,),), 2**31 - 1).fits_32_bits
    assert not Layout((2**31,), ((1,),), 2**31).fits_32_bits
    assert not Layout((3,), ((1,), (2**30,)), 3).fits_32_bits


def test_launches_large_tensors_in_rows() -> None:
    calls: list[object] = []

    def kernel(*arguments: object, **options: object) -> None:
        calls.append(options["threads"])

    launch_elements(kernel, 2**30, "x")
    launch_elements(kernel, 2**32 + 1, "x")
    assert calls == [2**30, (2**30, 5)]


def test_a_layout_divides_itself_once() -> None:
    layout = layout_of([torch.empty(3, 16)[:, :8], torch.empty(3, 8)])
    assert layout.in_vectors(4) is layout.in_vectors(4) is not None
    assert layout.in_parts(4) is layout.in_parts(4) is not None


def test_broadcast() -> None:
    assert broadcast([2, 1], (1, 3), torch.Size([3])) == torch.broadcast_shapes((2, 1), (1, 3), (3,))
    assert broadcast((2, 3), (2, 3)) == torch.Size([2, 3])
    with pytest.raises(RuntimeError, match="must match the size"):
        broadcast((2, 3), (2, 4))


class TestVectors:
    def test_contiguous_neighbours_become_vectors(self) -> None:
        rows = layout_of([torch.empty(3, 16)[:, :8], torch.empty(3, 8)])
        assert rows.in_vectors(4) == Layout((2, 3), ((1, 4), (1, 2)), 6)

    @pytest.mark.parametrize(
        "operand", [torch.empty(3, 6), torch.empty(3, 9)[:, :8], torch.empty(8, 3).t(), torch.empty(())]
    )
    def test_no_vectors_of_separate_neighbours(self, operand: torch.Tensor) -> None:
        other = torch.empty(operand.shape)
        assert layout_of([other, operand]).in_vectors(4) is None


@given(views(), views())
def test_parts_cover_every_element_once(x: torch.Tensor, other: torch.Tensor) -> None:
    for view in (x, other):
        layout = layout_of([view])
        parts = layout.in_parts(4)
        assert (parts is None) == all(size % 4 for size in layout.sizes)
        if parts is not None:
            part, (apart,) = parts
            whole = sorted(offsets(layout.packed, e) for e in range(layout.elements))
            covered = [offsets(part.packed, e) + k * apart for k in range(4) for e in range(part.elements)]
            assert sorted(covered) == whole


def test_divides_the_longest_divisible_dimension() -> None:
    assert Layout((8, 12, 3), ((1, 9, 200), (2, 20, 400)), 288).in_parts(4) == (
        Layout((8, 3, 3), ((1, 9, 200), (2, 20, 400)), 72),
        [27, 60],
    )
    assert Layout((7, 9), ((1, 10),), 63).in_parts(4) is None
    assert Layout((), ((),), 1).in_parts(4) is None
