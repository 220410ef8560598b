"""Calls with inputs that samplers leave out: the CPU accepts each, and the results depend on every input."""

from __future__ import annotations

import pytest
import torch

from mpsmith.audit.cases.sources.case_tensors import accepts, call_on_cpu, tensors_of
from mpsmith.audit.cases.sources.rare_inputs import RARE
from mpsmith.audit.cases.sources.written_calls import WrittenCalls
from mpsmith.audit.judging.execution import execute
from mpsmith.audit.judging.transfer import move
from mpsmith.audit.model.case import Case
from mpsmith.audit.running.input_dependence import InputDependence


def calls_of(operator: str, dtype: str) -> list[Case]:
    torch.manual_seed(0)
    (row,) = [row for row in RARE if row.operator == operator and dtype in row.dtypes]
    return list(row.calls(getattr(torch, dtype)))


@pytest.mark.parametrize("row", RARE, ids=lambda row: str(row.operator))
def test_the_cpu_accepts_each_call_and_every_input_matters(row: WrittenCalls) -> None:
    for dtype in row.dtypes:
        torch.manual_seed(0)
        cases = list(row.calls(getattr(torch, dtype)))
        assert len({case.title for case in cases}) == len(cases) > 0
        assert [case.title for case in cases if not accepts(case)] == []
        dependence = InputDependence(row.operator)
        for position, case in enumerate(cases):
            dependence.look_at(position, case, execute(case, move(case.args, case.kwargs, "cpu")))
        assert dependence.note == "", dtype


def test_padding_takes_a_row_out_of_the_gradient() -> None:
    case = calls_of("embedding", "float32")[0]
    weight = tensors_of(case)[1]
    case.call(*case.args, **case.kwargs).sum().backward()
    assert weight.grad is not None
    assert weight.grad[0].eq(0).all()
    assert weight.grad[4].ne(0).all()


def test_one_element_beside_many_does_not_begin_its_memory() -> None:
    for case in calls_of("sub", "int32"):
        assert case.args[1].numel() == 1 < case.args[0].numel()
        assert case.args[1].storage_offset() > 0


def test_integers_over_their_range_wrap_in_a_product() -> None:
    (case,) = calls_of("mm", "int32")
    exact = case.args[0].double() @ case.args[1].double()
    assert (exact.abs() > 2**31).any()
    assert (call_on_cpu(case).double() != exact).any()


def test_a_tail_that_is_cut_off_shows(monkeypatch: pytest.MonkeyPatch) -> None:
    (case,) = calls_of("normal_", "float32")
    assert call_on_cpu(case) == [True, True, True, True]
    plain = torch.Tensor.normal_
    monkeypatch.setattr(torch.Tensor, "normal_", lambda given: plain(given).clamp_(max=3))
    assert call_on_cpu(case) == [True, False, True, True]
