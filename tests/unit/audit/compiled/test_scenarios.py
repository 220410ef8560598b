"""The table of calls that OpInfo does not make."""

from __future__ import annotations

import pytest
import torch

from mpsmith.audit.compiled.scenarios import SCENARIOS, ScenarioSource
from mpsmith.audit.judging.execution import execute
from mpsmith.audit.judging.transfer import move
from mpsmith.audit.model.case import make_cases
from mpsmith.audit.model.group import GroupKey
from mpsmith.audit.model.selection import Samples


@pytest.fixture(scope="module")
def source() -> ScenarioSource:
    return ScenarioSource()


def test_no_two_rows_have_one_name() -> None:
    names = [(scenario.operator, scenario.variant) for scenario in SCENARIOS]
    assert len(names) == len(set(names))


def test_each_row_agrees_with_the_cpu(source: ScenarioSource) -> None:
    """A row that the CPU refuses would be no evidence, in silence."""
    wrong = []
    for key in source.groups():
        scenario = next(s for s in SCENARIOS if (s.operator, s.variant) == (key.operator, key.variant))
        cases = make_cases(source, key, Samples.DEFAULT, 0)
        assert cases
        for case in cases.values():
            try:
                execute(case, move(case.args, case.kwargs, "cpu"))
                refused = False
            except Exception:
                refused = True
            if refused is not scenario.refused:
                wrong.append(key.label)
    assert wrong == []


def test_integers_stay_in_their_range(source: ScenarioSource) -> None:
    key = GroupKey(source.name, "add", "then widened", "uint8", "fallback")
    (case,) = make_cases(source, key, Samples.DEFAULT, 0).values()
    assert case.args[0].tolist() == [255, 128, 0, 3, 1, 0]
    assert case.args[0].dtype is torch.uint8
