"""The ways in which a call is repeated, and what each of them gives."""

from __future__ import annotations

import sys
from typing import Any

import pytest
import torch
from torch import Tensor

from mpsmith.audit.cases.calls.invocation import SchemaCall
from mpsmith.audit.cases.sources import repetition
from mpsmith.audit.cases.sources.derived import VariedSource
from mpsmith.audit.cases.sources.opinfo import OpInfoSource
from mpsmith.audit.cases.sources.repetition import (
    REPETITION_FACTOR,
    SAME,
    FromTwoThreads,
    ManyTimes,
    WithOtherValues,
    changes_arguments,
    is_repeated,
    other_values,
    repeated,
)
from mpsmith.audit.cases.sources.schema import SchemaSource
from mpsmith.audit.model.case import Case
from support.source_cases import cases_by_title

X = torch.tensor([1.0, 2.0, 4.0])
INPUTS = ((X,), {})
OTHER = ((torch.tensor([3.0, 1.5, 0.75]),), {})
BETWEEN = ((torch.ones(2, 2),), {})


@pytest.fixture
def on_a_device(monkeypatch: pytest.MonkeyPatch) -> None:
    """The CPU counts as a device, on which calls are repeated."""
    monkeypatch.setattr(repetition, "on_device", lambda tree: True)


def test_an_overload_is_repeated_in_every_way_and_an_operator_with_other_values() -> None:
    assert list(cases_by_title(VariedSource(REPETITION_FACTOR, SchemaSource()), "erfinv")) == [
        "with other values",
        "from two threads",
        "200 times",
    ]
    assert list(cases_by_title(VariedSource(REPETITION_FACTOR, OpInfoSource()), "erfinv")) == ["with other values"]


def test_every_operator_is_repeated_in_one_dtype() -> None:
    keys = [
        key
        for key in VariedSource(REPETITION_FACTOR, SchemaSource()).groups()
        if key.operator in ("erfinv", "gcd", "any")
    ]
    assert {(key.operator, key.dtype) for key in keys} == {("erfinv", "float32"), ("gcd", "int64"), ("any", "float32")}
    assert {key.source for key in keys} == {"schema repetition"}


def test_random_and_kernel_free_operators_are_not_repeated() -> None:
    assert is_repeated("exp", of_schema=True)
    assert not is_repeated("bernoulli_.float", of_schema=True)
    assert not is_repeated("std.dim", of_schema=True)
    assert not is_repeated("nn.functional.dropout2d", of_schema=False)


def test_other_values_have_the_same_shapes_and_another_order() -> None:
    case = Case(torch.add, (X, torch.tensor([1, 2, 3])))
    (first, second), _ = other_values(case, keep_order=False)
    assert first.tolist() == [3.0, 1.5, 0.75]
    assert second.tolist() == [3, 2, 1]
    (first, second), _ = other_values(case, keep_order=True)
    assert first.tolist() == [0.75, 1.5, 3.0]
    assert second.tolist() == [1, 2, 3]


def test_other_values_that_the_cpu_refuses_are_not_given() -> None:
    def refuses(x: Tensor) -> Tensor:
        if x[0] != 1:
            raise ValueError
        return x

    (x,), _ = other_values(Case(refuses, (X,)), keep_order=False)
    assert x is X


def test_the_calls_with_other_values_in_their_order() -> None:
    results = WithOtherValues(torch.sum, copies=False)(INPUTS, OTHER, BETWEEN)
    assert [float(result) for result in results] == [7.0, 5.25, 4.0, 7.0, 7.0, 5.25, 5.25]
    assert X.tolist() == [1, 2, 4]


def test_a_call_that_writes_gets_its_own_tensors() -> None:
    results = WithOtherValues(SchemaCall("aten::neg_"), copies=True)(INPUTS, OTHER, BETWEEN)
    assert [result.tolist() for result, _ in results] == [
        [-1, -2, -4],
        [-3, -1.5, -0.75],
        [[-1, -1], [-1, -1]],
        [-1, -2, -4],
        [-1, -2, -4],
        [-3, -1.5, -0.75],
    ]
    assert X.tolist() == [1, 2, 4]


def test_changes_arguments() -> None:
    assert [name for name in ("aten::exp", "aten::exp_", "aten::native_batch_norm") if changes_arguments(name)] == [
        "aten::exp_",
        "aten::native_batch_norm",
    ]


class Sometimes:
    """Gives another result at one call."""

    def __init__(self, wrong_call: int) -> None:
        self.calls = 0
        self._wrong_call = wrong_call

    def __call__(self, x: Tensor) -> Tensor:
        self.calls += 1
        return x + 1 if self.calls == self._wrong_call else x * 1


@pytest.mark.usefixtures("on_a_device")
@pytest.mark.parametrize(("wrong_call", "said"), [(0, SAME), (201, "a later call gives another result"), (202, SAME)])
def test_two_hundred_calls_follow_the_first(wrong_call: int, said: str) -> None:
    operator = Sometimes(wrong_call)
    first, words = ManyTimes(operator, copies=False)(INPUTS, OTHER, BETWEEN)
    assert torch.equal(first, X)
    assert words == said
    assert operator.calls == 201


def test_the_cpu_is_called_once() -> None:
    operator = Sometimes(0)
    assert ManyTimes(operator, copies=False)(INPUTS, OTHER, BETWEEN)[1] == SAME
    assert operator.calls == 1


@pytest.mark.usefixtures("on_a_device")
def test_threads_that_share_a_buffer_are_noticed() -> None:
    scratch: dict[str, Tensor] = {}

    def shared(x: Tensor) -> Tensor:
        scratch["x"] = x
        for _ in range(20):  # lines at which the other thread goes on, also on a busy machine
            pass
        return scratch["x"] * 1

    before = sys.gettrace()
    _, said = FromTwoThreads(shared, copies=False)(INPUTS, OTHER, BETWEEN)
    assert "a later call gives another result" in said
    assert sys.gettrace() is before
    results, said = FromTwoThreads(torch.neg, copies=False)(INPUTS, OTHER, BETWEEN)
    assert said == [SAME, SAME]
    assert [result.tolist() for result in results] == [[-1, -2, -4], [-3, -1.5, -0.75]]


@pytest.mark.parametrize(
    ("first", "later", "alike"),
    [
        (torch.tensor([1.0, float("nan")]), torch.tensor([1.0, float("nan")]), True),
        (torch.tensor([1.0]), torch.tensor([1.0005]), True),
        (torch.tensor([1.0]), torch.tensor([1.1]), False),
        (torch.tensor([1]), torch.tensor([2]), False),
        (torch.ones(1), torch.ones(2), False),
        (torch.ones(1), torch.ones(1, dtype=torch.float16), False),
        (3, 4, False),
    ],
)
def test_a_later_result_may_differ_by_the_order_of_additions_alone(first: Any, later: Any, alike: bool) -> None:
    said = repeated(lambda: later, first, lambda calls: calls < 1)
    assert (said == SAME) is alike
