"""Inputs on which no result of a group depends are found, and what reads all of its inputs is not accused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

from mpsmith.audit.cases.calls.invocation import SchemaCall
from mpsmith.audit.judging.execution import execute
from mpsmith.audit.judging.transfer import move
from mpsmith.audit.model.case import Case
from mpsmith.audit.running.input_dependence import TRIES, InputDependence


def without_effect(*cases: Case, operator: str = "op") -> list[str]:
    dependence = InputDependence(operator)
    for position, case in enumerate(cases):
        dependence.probe(position, case, execute(case, move(case.args, case.kwargs, "cpu")))
    return dependence.without_effect


def case(call: Callable[..., Any], *args: Any, **kwargs: Any) -> Case:
    return Case(call, args, kwargs)


def test_a_factor_of_zero_hides_the_mask_and_the_gradient() -> None:
    gradient, mask = torch.ones(4), torch.tensor([True, False, True, True])
    call = SchemaCall("aten::native_dropout_backward")
    assert without_effect(case(call, gradient, mask, 0.0)) == ["grad_output", "mask"]
    assert without_effect(case(call, gradient, mask, 0.0), case(call, gradient, mask, 2.0)) == []


@pytest.mark.parametrize("values", [torch.tensor([1.0, 2.0]), torch.tensor([1, 2]), torch.tensor([True, False])])
def test_operators_that_read_their_inputs_are_not_named(values: Tensor) -> None:
    assert without_effect(case(torch.eq, values, values.clone())) == []


def test_integers_are_replaced_by_another_of_the_same_tensor() -> None:
    table, places = torch.arange(6.0).view(3, 2), torch.tensor([2, 0])
    assert without_effect(case(torch.nn.functional.embedding, places, table)) == []
    assert without_effect(case(torch.Tensor.index_fill, table, 0, places, 1.0)) == []
    same = torch.tensor([1, 1])
    assert without_effect(case(lambda index: index.shape, same)) == []  # it cannot be changed, so nothing is known
    assert without_effect(case(lambda index: index.shape, places)) == ["argument 1"]
    assert without_effect(case(lambda index: index.shape, places), operator="embedding_bag") == []


def test_a_target_that_is_only_written_is_not_an_input() -> None:
    call = SchemaCall("aten::exp.out")
    assert without_effect(case(call, torch.ones(2), out=torch.zeros(2))) == []


def test_undefined_results_show_nothing() -> None:
    undefined = Case(torch.empty_like, (torch.ones(2),), uninitialised="memory")
    assert without_effect(undefined) == []


def test_each_input_is_changed_a_few_times() -> None:
    calls = []

    def ignores(given: Tensor) -> Tensor:
        calls.append(given)
        return torch.zeros(2)

    assert without_effect(*[case(ignores, torch.ones(2))] * 5) == ["argument 1"]
    assert len(calls) == 5 + TRIES


def test_results_that_cannot_be_compared_name_no_input() -> None:
    def nested(given: Tensor) -> Tensor:
        return torch.nested.nested_tensor([torch.ones(2), torch.ones(3)])

    assert without_effect(case(nested, torch.ones(2))) == []
