"""The level quick takes every operator plainly in each dtype, and its variations in one."""

from __future__ import annotations

import pytest

from mpsmith.audit.cases.covering.quick_level import MAIN_DTYPE, of_quick_level
from mpsmith.audit.cases.sources import case_sources
from mpsmith.audit.model.case import CaseSource, in_order_of_execution
from mpsmith.audit.model.group import GroupKey
from mpsmith.audit.model.selection import Samples


@pytest.fixture(scope="module")
def sources() -> dict[str, CaseSource]:
    return case_sources(())


@pytest.fixture(scope="module")
def groups(sources: dict[str, CaseSource]) -> list[GroupKey]:
    names = ("opinfo", "layouts", "repetition", "schema forms", "forms")
    return [key for name in names for key in in_order_of_execution(sources[name], sources[name].groups())]


def test_plain_cases_are_taken_in_every_dtype(sources: dict[str, CaseSource], groups: list[GroupKey]) -> None:
    taken = of_quick_level(groups, sources)
    plain = [key for key in groups if key.source == "opinfo"]
    assert [key for key in taken if key.source == "opinfo"] == plain


def test_variations_are_taken_in_one_dtype_and_for_every_operator(
    sources: dict[str, CaseSource], groups: list[GroupKey]
) -> None:
    for name in ("layouts", "schema forms", "forms"):
        taken = [(key.operator, key.variant) for key in of_quick_level(groups, sources) if key.source == name]
        offered = {(key.operator, key.variant) for key in groups if key.source == name}
        assert len(taken) == len(set(taken))
        assert set(taken) == offered


def test_float32_is_every_second(sources: dict[str, CaseSource], groups: list[GroupKey]) -> None:
    taken = [key.dtype for key in of_quick_level(groups, sources) if key.source == "layouts"]
    assert 0.4 < taken.count(MAIN_DTYPE) / len(taken) < 0.7
    assert len(set(taken)) > 8


def test_rare_failures_are_left_to_the_default_level(sources: dict[str, CaseSource], groups: list[GroupKey]) -> None:
    assert any(key.source == "repetition" for key in groups)
    assert not any(key.source == "repetition" for key in of_quick_level(groups, sources))


def test_the_quick_level_keeps_the_order(sources: dict[str, CaseSource], groups: list[GroupKey]) -> None:
    taken = of_quick_level(groups, sources)
    kept = set(taken)
    assert taken == [key for key in groups if key in kept]


def test_groups_without_cases_at_a_level_are_not_planned(sources: dict[str, CaseSource]) -> None:
    assert not sources["layouts"].has_cases_in("int8", Samples.DEFAULT)
    assert sources["layouts"].has_cases_in("int8", Samples.FULL)
    assert sources["layouts"].has_cases_in("float32", Samples.QUICK)
    assert sources["opinfo"].has_cases_in("int8", Samples.QUICK)
