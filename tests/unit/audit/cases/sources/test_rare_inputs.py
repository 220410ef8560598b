"""Calls with inputs that samplers leave out: the CPU accepts each, and the results depend on every input."""

from __future__ import annotations

from itertools import combinations

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
            dependence.probe(position, case, execute(case, move(case.args, case.kwargs, "cpu")))
        assert dependence.note == "", dtype


def test_padding_takes_a_row_out_of_the_gradient() -> None:
    case = calls_of("embedding", "float32")[0]
    weight = tensors_of(case)[1]
    case.call(*case.args, **case.kwargs).sum().backward()
    assert weight.grad is not None
    assert weight.grad[0].eq(0).all()
    assert weight.grad[4].ne(0).all()


def test_a_single_element_beside_many_has_a_storage_offset() -> None:
    for case in calls_of("sub", "int32"):
        assert case.args[1].numel() == 1 < case.args[0].numel()
        assert case.args[1].storage_offset() > 0


def test_integers_over_their_range_wrap_in_a_product() -> None:
    (case,) = calls_of("mm", "int32")
    exact = case.args[0].double() @ case.args[1].double()
    assert (exact.abs() > 2**31).any()
    assert (call_on_cpu(case).double() != exact).any()


def test_a_truncated_tail_is_detected(monkeypatch: pytest.MonkeyPatch) -> None:
    (case,) = calls_of("normal_", "float32")
    assert call_on_cpu(case) == [True, True, True, True]
    plain = torch.Tensor.normal_
    monkeypatch.setattr(torch.Tensor, "normal_", lambda given: plain(given).clamp_(max=3))
    assert call_on_cpu(case) == [True, False, True, True]


@pytest.mark.parametrize(("operator", "usual"), [("any", False), ("all", True)])
def test_one_element_decides_a_reduction(operator: str, usual: bool) -> None:
    cases = calls_of(operator, "float32")
    assert any(tensors_of(case)[0].isnan().any() for case in cases)
    for case in cases:
        given, result = tensors_of(case)[0], call_on_cpu(case)
        decided = [bool(row) for row in result.reshape(-1)]
        # NaN is true, so that it decides `any` and leaves `all` as it is.
        special = not usual if not given.isnan().any() else True
        assert decided.count(usual) == len(decided) - (special is not usual), case.title


def test_draws_of_integers_and_shares_show_a_wrong_draw(monkeypatch: pytest.MonkeyPatch) -> None:
    draw = calls_of("bernoulli_", "int32")[1]
    assert call_on_cpu(draw) == [True, True]
    bernoulli = torch.Tensor.bernoulli_
    monkeypatch.setattr(torch.Tensor, "bernoulli_", lambda given, share: bernoulli(given, share / 2))
    assert call_on_cpu(draw) == [False, True]
    shares = calls_of("_sample_dirichlet", "float32")[0]
    sums, positive, below_one = call_on_cpu(shares)
    torch.testing.assert_close(sums, torch.ones(400))
    assert positive
    assert below_one


@pytest.mark.parametrize(("operator", "factors"), [("upsample_nearest3d", 3), ("_upsample_nearest_exact2d", 2)])
def test_ignored_or_swapped_factors_change_the_result(operator: str, factors: int) -> None:
    for case in calls_of(operator, "float32"):
        others, given = case.args[:-factors], case.args[-factors:]
        right = case.call(*case.args)[0]
        for first, other in combinations(range(factors), 2):
            swapped = list(given)
            swapped[first], swapped[other] = given[other], given[first]
            assert not case.call(*others, *swapped)[0].equal(right)
        for place in (place for place, factor in enumerate(given) if factor):
            left_out = [None if i == place else factor for i, factor in enumerate(given)]
            assert not case.call(*others, *left_out)[0].equal(right)
