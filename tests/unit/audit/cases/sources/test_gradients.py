"""Which gradients are asked for, of which outputs, with which cotangents."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from mpsmith.audit.cases.sources.derived import VariedSource
from mpsmith.audit.cases.sources.gradients import (
    COTANGENTS,
    GRADIENT_FACTOR,
    as_of_a_sum,
    backward_twice,
    of_some_inputs,
    of_some_outputs,
    of_views,
    only,
    positions_with_gradient,
    used_twice,
    with_cotangents,
    zero,
)
from mpsmith.audit.cases.sources.modules import ModuleSource
from mpsmith.audit.cases.sources.opinfo import OpInfoSource
from mpsmith.audit.model.case import Case
from support.source_cases import cases_by_title

OPINFOS = OpInfoSource()


def leaf(*numbers: float) -> Tensor:
    return torch.tensor(numbers, dtype=torch.float32, requires_grad=True)


def case_of(*args: object, call: Any = torch.mul) -> Case:
    return Case(call, args, differentiable=True)


def test_cotangents_are_expanded_at_an_offset_and_zero() -> None:
    cases = list(with_cotangents(case_of(leaf(1, 2), leaf(3, 4))))
    assert [case.form for case in cases] == [
        "gradients of the outputs as of a sum",
        "gradients of the outputs offset",
        "gradients of the outputs zero",
    ]
    random = torch.randn(2, 3)
    of_sum = as_of_a_sum(random)
    assert (of_sum.stride(), of_sum.tolist()) == ((0, 0), [[1.0] * 3] * 2)
    assert zero(random).tolist() == [[0.0] * 3] * 2
    assert [case.cotangent_layout for case in cases] == list(COTANGENTS)


def test_each_input_alone_requires_a_gradient_and_each_alone_does_not() -> None:
    case = case_of([leaf(1), torch.ones(1)], leaf(2), leaf(3))
    assert positions_with_gradient(case) == [0, 2, 3]
    positions = {varied.title: positions_with_gradient(varied) for varied in of_some_inputs(case)}
    assert positions == {
        "gradient of tensor 0 alone": [0],
        "gradient of tensor 2 alone": [2],
        "gradient of tensor 3 alone": [3],
        "no gradient of tensor 0": [2, 3],
        "no gradient of tensor 2": [0, 3],
        "no gradient of tensor 3": [0, 2],
    }
    assert positions_with_gradient(case) == [0, 2, 3]
    assert list(of_some_inputs(case_of(leaf(1), 2))) == []
    assert len(list(of_some_inputs(case_of(leaf(1), leaf(2))))) == 2


def test_each_of_several_outputs_is_used_alone() -> None:
    def both(x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        return x * 2, x.detach(), x * 3

    cases = list(of_some_outputs(case_of(leaf(1), call=both)))
    assert [case.title for case in cases] == ["gradient of output 0 alone", "gradient of output 1 alone"]
    picked = cases[1].process_output(both(leaf(5)))
    assert [t.tolist() for t in picked] == [[15.0]]
    assert only(lambda output: output, 2)(both(leaf(5))) == []
    assert list(of_some_outputs(case_of(leaf(1), leaf(2)))) == []


def test_other_uses_of_a_call() -> None:
    seen: list[bool] = []

    def product(x: Tensor, y: Tensor) -> Tensor:
        seen.append(x._base is not None)
        return x * y

    x, y = leaf(2, 3), leaf(5, 7)
    views = of_views(case_of(x, y, call=product))
    assert views.call(x, y).tolist() == [10, 21]
    assert seen == [True]
    twice = used_twice(case_of(x, y))
    outputs = twice.process_output(twice.call(x, y))
    assert torch.autograd.grad(outputs, [x], [torch.ones(2)] * 2)[0].tolist() == [10, 14]
    again = backward_twice(case_of(x, y))
    assert not again.differentiable
    assert [g.tolist() for g in again.call(leaf(2, 3), leaf(5, 7))] == [[10, 14], [4, 6]]


def test_operators_and_modules_are_asked_for_gradients() -> None:
    source = VariedSource(GRADIENT_FACTOR, OPINFOS)
    linear = cases_by_title(source, "nn.functional.linear")
    assert {"gradient of tensor 1 alone", "no gradient of tensor 0", "gradients of the outputs as of a sum"} <= set(
        linear
    )
    assert len(cases_by_title(source, "nn.functional.linear", "float16")) == 2
    assert {"gradient of output 0 alone", "gradient of output 1 alone"} <= set(cases_by_title(source, "linalg.qr"))
    assert cases_by_title(source, "exp")
    modules = VariedSource(GRADIENT_FACTOR, ModuleSource())
    assert "gradient of tensor 0 alone" in cases_by_title(modules, "nn.Linear", variant="train")
    assert len(cases_by_title(modules, "nn.Linear", variant="eval")) == 2
