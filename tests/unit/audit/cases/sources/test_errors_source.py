"""What an operator must refuse: error inputs, and tensors that do not fit each other."""

from __future__ import annotations

import torch

from mpsmith.audit.cases.sources.derived import VariedSource
from mpsmith.audit.cases.sources.errors import ERROR_FACTOR, unfitting
from mpsmith.audit.cases.sources.opinfo import OpInfoSource
from mpsmith.audit.model.case import Case, make_cases
from mpsmith.audit.model.group import GroupKey
from mpsmith.audit.model.selection import Samples


def test_a_tensor_that_does_not_fit_is_refused_by_the_cpu() -> None:
    cases = list(unfitting(Case(torch.add, (torch.ones(2, 3), torch.ones(2, 3)), differentiable=True)))
    assert [[tuple(t.shape) for t in case.args] for case in cases] == [[(2, 4), (2, 3)], [(2, 3), (2, 4)]]
    assert all(case.errors_count and not case.differentiable for case in cases)


def test_calls_that_the_cpu_accepts_are_not_errors() -> None:
    assert not list(unfitting(Case(torch.outer, (torch.ones(2), torch.ones(3)))))
    assert not list(unfitting(Case(torch.exp, (torch.ones(2),))))


def test_operators_without_error_inputs_have_some() -> None:
    source = VariedSource(ERROR_FACTOR, OpInfoSource())
    key = GroupKey("errors", "xlogy", "", "float32", "fallback")
    assert key in set(source.groups())
    assert any("does not fit" in case.title for case in make_cases(source, key, Samples.DEFAULT, 0).values())
