"""A failing case gets small and goes on failing; the program made of it runs with torch alone."""

from __future__ import annotations

import torch

from mpsmith.audit.model.case import Case
from mpsmith.audit.model.group import GroupKey
from mpsmith.audit.model.verdicts import CaseVerdict, Outcome
from mpsmith.audit.running.reproduction.shrinking import shrink

KEY = GroupKey("layouts", "nn.functional.softshrink", "", "float32", "fallback")


def wrong_when(condition):
    def judge(case: Case) -> Outcome:
        return Outcome(CaseVerdict.WRONG if condition(*case.args) else CaseVerdict.PASSED)

    return judge


def test_shrinks_sizes_while_the_case_fails() -> None:
    case = Case(torch.nn.functional.softshrink, (torch.randn(7, 12, 5),))
    smallest, outcome = shrink(case, wrong_when(lambda x: x.dim() >= 1 and x.shape[-1] >= 3))
    assert outcome.verdict is CaseVerdict.WRONG
    assert list(smallest.args[0].shape) == [3]


def test_a_layout_that_matters_stays() -> None:
    case = Case(torch.nn.functional.softshrink, (torch.randn(8, 6).t(),))
    smallest, _ = shrink(case, wrong_when(lambda x: not x.is_contiguous()))
    assert not smallest.args[0].is_contiguous()


def test_a_layout_that_does_not_matter_goes() -> None:
    case = Case(torch.nn.functional.softshrink, (torch.randn(8, 6)[:, ::2],))
    smallest, _ = shrink(case, wrong_when(lambda x: x.numel() >= 6))
    assert smallest.args[0].is_contiguous()
    assert smallest.args[0].numel() == 6
    assert not smallest.args[0].any(), "values that do not matter become zero"


def test_arguments_that_belong_together_shrink_together() -> None:
    case = Case(torch.add, (torch.randn(6, 4), torch.randn(4)))
    smallest, _ = shrink(case, wrong_when(lambda x, y: x.dim() and y.dim() and x.shape[-1] == y.shape[-1] >= 2))
    assert smallest.args[0].shape[-1] == smallest.args[1].shape[-1] == 2


def test_drops_simplifications_that_the_reference_rejects() -> None:
    def judge(case: Case) -> Outcome:
        even = case.args[0].numel() % 2 == 0
        return Outcome(CaseVerdict.WRONG if even else CaseVerdict.REFERENCE_FAILED)

    smallest, outcome = shrink(Case(torch.abs, (torch.randn(32),)), judge)
    assert outcome.verdict is CaseVerdict.WRONG
    assert smallest.args[0].numel() == 2


def test_a_passing_case_stays_as_it_is() -> None:
    case = Case(torch.abs, (torch.randn(4),))
    assert shrink(case, wrong_when(lambda x: False))[0] is case


def test_another_failure_is_not_taken_for_the_same() -> None:
    def judge(case: Case) -> Outcome:
        size = case.args[0].numel()
        differs = f"output 0: {size} of {size} elements differ; at [0]: nan, CPU {size}"
        return Outcome(CaseVerdict.WRONG, message=differs if size > 3 else "returns where the CPU raises IndexError")

    smallest, outcome = shrink(Case(torch.abs, (torch.randn(5, 6),)), judge)
    assert smallest.args[0].numel() == 4
    assert "elements differ" in outcome.message


def test_gradients_stay_wanted() -> None:
    case = Case(torch.abs, (torch.randn(4, requires_grad=True),), differentiable=True)
    smallest, _ = shrink(case, wrong_when(lambda x: True))
    assert smallest.args[0].requires_grad
