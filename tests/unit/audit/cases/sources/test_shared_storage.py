"""All tensors of a call in one storage, and all that are alike as one tensor."""

from __future__ import annotations

import torch

from mpsmith.audit.cases.sources.shared_storage import all_the_same, in_one_memory, in_one_storage
from mpsmith.audit.model.case import Case


def test_every_pair_of_one_dtype_shares_a_storage_and_none_overlaps() -> None:
    tensors = (torch.ones(2, 3), torch.arange(4), torch.full((3,), 2.0), torch.full((2, 3), 3.0))
    case = in_one_storage(Case(torch.addcmul, tensors))
    assert case is not None
    first, integers, vector, last = case.args
    assert (
        first.untyped_storage().data_ptr() == vector.untyped_storage().data_ptr() == last.untyped_storage().data_ptr()
    )
    assert integers is tensors[1]
    assert all(tensor.storage_offset() > 0 and tensor.is_contiguous() for tensor in (first, vector, last))
    assert all(torch.equal(mine, other) for mine, other in zip(case.args, tensors, strict=True))
    assert case.errors_count


def test_a_call_with_one_tensor_of_each_dtype_shares_nothing() -> None:
    assert in_one_storage(Case(torch.gather, (torch.ones(3), 0, torch.tensor([1])))) is None


def test_tensors_that_are_alike_become_one() -> None:
    case = all_the_same(Case(torch.add, (torch.zeros(2), torch.ones(2), torch.ones(3))), (), True)
    assert case is not None
    assert case.args[0] is case.args[1]
    assert case.args[0].tolist() == [0.0, 0.0]
    assert case.args[2].shape == (3,)


def test_indices_and_written_tensors_do_not_share_memory() -> None:
    places = Case(torch.take, (torch.tensor([1, 0]), torch.tensor([0, 1])))
    assert all_the_same(places, (), elementwise=False) is None
    assert all_the_same(Case(torch.Tensor.addmm_, (torch.ones(2, 2), torch.zeros(2, 2))), (0,), False) is None


def test_operands_of_an_elementwise_call_are_made_equal_in_shape() -> None:
    _, same = in_one_memory(Case(torch.add, (torch.ones(2, 1), torch.ones(1, 3))), (), elementwise=True)
    assert same.args[0] is same.args[1]
    assert same.args[0].shape == (2, 3)
