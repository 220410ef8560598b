"""Copies of inputs keep what an operator can see of them."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from mpsmith.audit.judging.transfer import differentiable_leaves, move, widened
from mpsmith.audit.model.description import describe


def copy(*args, **kwargs):
    return move(args, kwargs, "cpu")


base = torch.arange(48.0).reshape(4, 12)
LAYOUTS = {
    "contiguous": base,
    "transposed": base.t(),
    "stepped": base[:, ::3],
    "offset": base[1:, 2:],
    "expanded": torch.arange(3.0).expand(5, 3),
    "flipped bits": torch._neg_view(base),
    "0-dim": torch.tensor(3.0),
    "empty": torch.empty(0, 3),
    "channels last": torch.arange(48.0).reshape(2, 2, 3, 4).to(memory_format=torch.channels_last),
}


@pytest.mark.parametrize("name", LAYOUTS)
def test_layout_and_values_survive(name: str) -> None:
    original = LAYOUTS[name]
    ((moved,), _) = copy(original)
    assert torch.equal(moved, original)
    assert moved.stride() == original.stride()
    assert moved.storage_offset() == original.storage_offset()
    assert moved.is_neg() == original.is_neg()
    assert moved.untyped_storage().data_ptr() != original.untyped_storage().data_ptr() or original.numel() == 0


def test_conjugate_bit_survives() -> None:
    original = torch.tensor([1 + 2j]).conj()
    ((moved,), _) = copy(original)
    assert moved.is_conj()
    assert torch.equal(moved, original)


def test_a_write_to_the_copy_leaves_the_original() -> None:
    original = base[:, ::3]
    before = original.clone()
    ((moved,), _) = copy(original)
    moved.zero_()
    assert torch.equal(original, before)


def test_arguments_that_share_memory_still_do() -> None:
    storage = torch.arange(10.0)
    ((left, right), _) = copy(storage[2:8], [storage[4:]])
    left.fill_(-1.0)
    assert right[0][0].item() == -1.0


def test_the_same_tensor_given_twice_stays_one() -> None:
    tensor = torch.ones(3)
    (args, kwargs) = copy(tensor, tensor, other=tensor)
    assert args[0] is args[1] is kwargs["other"]


def test_leaves_of_autograd_stay_leaves() -> None:
    weight = torch.ones(3, requires_grad=True)
    (args, kwargs) = copy(torch.ones(3), [weight], bias=weight)
    assert differentiable_leaves((args, kwargs)) == [args[1][0]]
    assert args[1][0].is_leaf


def test_a_named_device_is_replaced() -> None:
    _, kwargs = move((), {"device": "cpu"}, "meta")
    assert kwargs == {"device": "meta"}
    _, kwargs = move((), {"device": torch.device("cpu")}, "meta")
    assert kwargs == {"device": torch.device("meta")}


def test_arguments_for_the_host_stay_there() -> None:
    (args, _) = move((torch.ones(2), torch.ones(2)), {}, "meta", frozenset({1}))
    assert [a.device.type for a in args] == ["meta", "cpu"]


def test_sparse_tensors_are_copied() -> None:
    sparse = torch.eye(3).to_sparse()
    ((moved,), _) = copy(sparse)
    assert moved.layout is torch.sparse_coo
    assert torch.equal(moved.to_dense(), sparse.to_dense())


def test_widening_leaves_integers_and_raises_the_rest() -> None:
    tree = (torch.ones(2, dtype=torch.float16, requires_grad=True), torch.ones(2, dtype=torch.int8), torch.complex64, 3)
    half, integer, dtype, number = widened(tree)
    assert half.dtype is torch.float64
    assert half.requires_grad
    assert integer.dtype is torch.int8
    assert dtype is torch.complex128
    assert number == 3


def test_a_description_has_the_relevant_properties() -> None:
    text = describe((base.t(), [torch.ones(2)], 0.5, "mean"))
    assert text == "(float32[12, 4](stride (1, 12)), [float32[2]], 0.5, 'mean')"


def test_the_description_of_a_generator_is_the_same_in_every_process() -> None:
    assert describe((torch.Generator(),)) == "(Generator('cpu'))"


@given(st.text(max_size=400))
def test_descriptions_are_short(text: str) -> None:
    assert len(describe(text)) <= 240


@given(st.data())
def test_any_view_of_a_storage_survives(data: st.DataObject) -> None:
    storage = torch.arange(60.0)
    sizes = data.draw(st.lists(st.integers(0, 4), max_size=3))
    strides = data.draw(st.lists(st.integers(0, 6), min_size=len(sizes), max_size=len(sizes)))
    offset = data.draw(st.integers(0, 5))
    original = torch.as_strided(storage, sizes, strides, offset)
    ((moved,), _) = copy(original)
    assert moved.shape == original.shape
    assert moved.stride() == original.stride()
    assert torch.equal(moved, original)
