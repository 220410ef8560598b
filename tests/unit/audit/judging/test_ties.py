"""Indices of equal elements may differ between devices, but for a stable sort."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from torch import Tensor

from mpsmith.audit.judging.ties import is_in_another_order, names_equal_elements, same_for_equal_elements
from mpsmith.audit.model.case import Case

NAN = math.nan
ROWS = torch.tensor([[2.0, 1.0, 2.0], [NAN, NAN, 0.0]])


def case(call: Any, *args: Any, **kwargs: Any) -> Case:
    return Case(call, (ROWS, *args), kwargs)


@pytest.mark.parametrize(
    ("made", "mine", "cpus", "equal"),
    [
        (case(torch.argsort, 1), [[1, 2, 0], [2, 1, 0]], [[1, 0, 2], [2, 0, 1]], True),
        (case(torch.argsort, 1), [[2, 1, 0], [2, 1, 0]], [[1, 0, 2], [2, 0, 1]], False),
        (case(torch.argsort, dim=1, stable=True), [[1, 2, 0], [2, 1, 0]], [[1, 0, 2], [2, 0, 1]], False),
        (case(torch.argsort, 1), [[1, 3, 0], [2, 1, 0]], [[1, 0, 2], [2, 0, 1]], False),
        (case(torch.kthvalue, 2), [2, 0], [0, 1], True),
        (case(torch.kthvalue, 2, keepdim=True), [[2], [0]], [[0], [1]], True),
        (case(torch.kthvalue, 2), [1, 0], [0, 1], False),
        (case(torch.topk, 1), [[2], [1]], [[0], [0]], True),
        (case(torch.argmax, 1), [2, 0], [0, 1], False),
        (case(torch.ops.aten._unique, True, True), [[2, 1, 2], [4, 3, 0]], [[2, 1, 2], [3, 4, 0]], True),
        (case(torch.ops.aten._unique, True, True), [[1, 2, 1], [4, 3, 0]], [[2, 1, 2], [3, 4, 0]], False),
        (case(torch.ops.aten._unique, True, True), [[2, 1, 2], [3, 3, 0]], [[2, 1, 2], [3, 4, 0]], False),
    ],
)
def test_indices(made: Case, mine: list[Any], cpus: list[Any], equal: bool) -> None:
    assert names_equal_elements(made, torch.tensor(mine), torch.tensor(cpus)) is equal


def test_a_call_in_a_row_chooses_from_rounded_elements() -> None:
    made, mine, cpus = Case(torch.kthvalue, (torch.tensor([1.0, 1.001]), 1), {}), torch.tensor(0), torch.tensor(1)
    assert names_equal_elements(made, mine, cpus, torch.bfloat16)
    assert not names_equal_elements(made, mine, cpus, torch.float32)


def test_a_form_with_out_is_known_by_the_operator_of_its_group() -> None:
    def form(*args: Any, **kwargs: Any) -> Any:
        return torch.sort(*args, **kwargs)

    form.__name__ = "out= transposed"
    unstable, other = Case(form, (ROWS,), {}, entry="sort"), Case(form, (ROWS,), {}, entry="argmax")
    mine, cpus = torch.tensor([[1, 2, 0], [2, 1, 0]]), torch.tensor([[1, 0, 2], [2, 0, 1]])
    assert names_equal_elements(unstable, mine, cpus)
    assert not names_equal_elements(other, mine, cpus)


def test_unsorted_elements_come_in_any_order_with_their_indices() -> None:
    values, indices = torch.tensor([[2.0, 1.0], [NAN, 0.0]]), torch.tensor([[0, 1], [1, 2]])
    turned = values.flip(1), indices.flip(1)
    unsorted, ordered = case(torch.topk, 2, sorted=False), case(torch.topk, 2)
    for position in (0, 1):
        assert is_in_another_order(unsorted, position, turned, (values, indices))
        assert not is_in_another_order(ordered, position, turned, (values, indices))
        assert not is_in_another_order(unsorted, position, (turned[0], indices), (values, indices))
        assert not is_in_another_order(unsorted, position, (turned[0] + 1, turned[1]), (values, indices))


def test_calls_in_a_row_choose_along_any_dimension() -> None:
    columns = Case(torch.kthvalue, (torch.tensor([[1, 5, 1], [1, 2, 2]]), 1), {}, title="in a row: dim=0")
    assert names_equal_elements(columns, torch.tensor([1, 1, 0]), torch.tensor([0, 1, 0]))
    assert not names_equal_elements(columns, torch.tensor([1, 0, 0]), torch.tensor([0, 1, 0]))


def test_values_are_not_taken_for_indices() -> None:
    values: Tensor = torch.zeros(2, 3)
    assert not names_equal_elements(case(torch.sort, 1), values, values + 1)


EQUAL = torch.tensor([[1.0, 2.0, 1.0], [3.0, 3.0, 4.0]])


@pytest.mark.parametrize(
    ("mine", "same"),
    [
        ([[0.0, 0.0, 5.0], [0.0, 7.0, 0.0]], True),
        ([[2.0, 0.0, 3.0], [7.0, 0.0, 0.0]], True),
        ([[0.0, 5.0, 0.0], [7.0, 0.0, 0.0]], False),
        ([[5.0, 0.0, 0.0], [0.0, 6.0, 0.0]], False),
    ],
)
def test_gradients_that_went_to_equal_elements(mine: list[list[float]], same: bool) -> None:
    gradient, cpus = torch.tensor(mine), torch.tensor([[5.0, 0.0, 0.0], [7.0, 0.0, 0.0]])
    assert same_for_equal_elements(Case(torch.mode, (EQUAL,)), gradient, cpus) is same
    assert same_for_equal_elements(Case(torch.mode, (EQUAL.t(), 0)), gradient.t(), cpus.t()) is same
    assert not same_for_equal_elements(Case(torch.sum, (EQUAL,)), gradient, cpus)
    assert not same_for_equal_elements(Case(torch.mode, (EQUAL[0],)), gradient, cpus)
