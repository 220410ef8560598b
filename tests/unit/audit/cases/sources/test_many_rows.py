"""The batch of a part's call repeated: where it is one, and where it is not known to be."""

from __future__ import annotations

import torch

from mpsmith.audit.cases.calls.invocation import SchemaCall
from mpsmith.audit.cases.sources.many_rows import ROWS, repeated_batch, with_many_rows
from mpsmith.audit.cases.sources.sizes import LONGEST
from mpsmith.audit.model.case import Case


def test_the_batch_is_repeated_in_tensors_and_in_lists_of_sizes() -> None:
    call = SchemaCall("aten::upsample_nearest1d_backward")
    case = repeated_batch(Case(call, (torch.rand(2, 3, 8), [8], [2, 3, 4], None)))
    assert case is not None
    gradient, _, sizes, _ = case.args
    assert gradient.shape[0] == sizes[0] >= ROWS
    assert gradient.numel() >= LONGEST
    assert gradient.shape[1:] == (3, 8)


def test_arguments_without_a_batch_dimension_stay() -> None:
    call = SchemaCall("aten::native_layer_norm_backward")
    x, weight = torch.rand(2, 5), torch.rand(5)
    given = (x, x, [5], torch.rand(2, 1), torch.rand(2, 1), weight, weight, [True, True, True])
    case = repeated_batch(Case(call, given))
    assert case is not None
    assert case.args[3].shape[0] == case.args[0].shape[0] >= ROWS
    assert case.args[5] is weight


def test_a_size_that_another_dimension_has_is_not_a_batch() -> None:
    call = SchemaCall("aten::tanh_backward")
    assert repeated_batch(Case(call, (torch.rand(3, 3), torch.rand(3, 3)))) is None


def test_a_list_whose_length_may_follow_the_batch_keeps_it() -> None:
    pairs = torch.rand(6)
    call = SchemaCall("aten::_pdist_backward")
    assert repeated_batch(Case(call, (pairs, torch.rand(4, 3), 2.0, pairs))) is None


def test_the_first_call_with_a_batch_is_taken() -> None:
    call = SchemaCall("aten::tanh_backward")
    square, other = torch.rand(3, 3), torch.rand(2, 3)
    (case,) = with_many_rows([Case(call, (square, square)), Case(call, (other, other))])
    assert case.args[0].shape[1:] == (3,)
    assert case.title == f"{case.args[0].shape[0]:,} rows"
