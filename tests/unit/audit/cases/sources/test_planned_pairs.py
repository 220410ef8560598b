"""Calls at further levels by a recorded plan."""

from __future__ import annotations

from collections import Counter

import pytest
import torch

from mpsmith.audit.cases.covering.levels import levels_of
from mpsmith.audit.cases.covering.pairs import Levels
from mpsmith.audit.cases.sources import case_sources
from mpsmith.audit.cases.sources.case_tensors import tensors_of
from mpsmith.audit.cases.sources.opinfo import OpInfoSource
from mpsmith.audit.cases.sources.planned_pairs import (
    PLAN,
    Planned,
    PlannedPairSource,
    at_levels,
    calls_of,
    in_dtype,
    parsed,
    written,
)
from mpsmith.audit.cases.sources.schema import SchemaSource
from mpsmith.audit.model.case import Case
from mpsmith.audit.model.group import GroupKey
from mpsmith.audit.model.selection import Samples
from support.pair_planning import BASES
from support.stores import opinfo

ROWS = parsed(PLAN.read_text())
SOURCE, KEY = OpInfoSource(), opinfo("clamp")


def test_each_line_of_the_plan_reads_as_it_is_written() -> None:
    assert written(ROWS) == PLAN.read_text()
    assert len(set(ROWS)) == len(ROWS) > 1_000


def test_a_planned_call_is_at_its_levels_and_the_same_for_every_seed() -> None:
    source = PlannedPairSource("planned pairs", OpInfoSource())
    key = next(key for key in source.groups() if (key.operator, key.dtype) == ("masked.std", "float32"))
    torch.manual_seed(1)
    cases = list(source.cases(key, Samples.DEFAULT))
    rows = [row for row in ROWS if row.base.operator == "masked.std"]
    wanted = [dict(row.levels) for row in rows if row.base.source == "opinfo" and row.dtype == "float32"]
    for case, levels in zip(cases, wanted, strict=True):
        assert levels.items() & set(levels_of(case))
    torch.manual_seed(2)
    for case, again in zip(cases, source.cases(key, Samples.DEFAULT), strict=True):
        assert torch.equal(case.args[0].nan_to_num(), again.args[0].nan_to_num())


def test_the_sources_still_make_nearly_all_calls_of_the_plan() -> None:
    sources = {source.name: source for source in (OpInfoSource(), SchemaSource())}
    by_group: dict[GroupKey, set[str]] = {}
    for row in ROWS:
        by_group.setdefault(row.base, set()).add(row.call)
    groups = [key for key in by_group if key.source in sources][::10]
    missing = sum(len(by_group[key] - calls_of(sources[key.source], key).keys()) for key in groups)
    assert missing <= 0.05 * sum(len(by_group[key]) for key in groups), "plan again: docs/reports.md, Pairs of levels"


@pytest.mark.parametrize(
    ("source", "operator", "levels"),
    [
        ("mixed dtypes", "hypot", (("layout", "transposed"),)),
        ("modules", "nn.Linear", (("layout", "transposed"), ("gradient", "all"))),
        ("schema", "addmm.out", (("form", "out= transposed"),)),
        ("argument pairs", "addmm", (("other layouts", "offset"), ("values", "nan"))),
        ("opinfo", "mm", (("size", "over 65,536"), ("layout", "transposed"))),
    ],
)
def test_calls_of_each_kind_of_source_are_brought_to_levels(source: str, operator: str, levels: Levels) -> None:
    base = case_sources(())[source]
    key = next(key for key in base.groups_of([operator]) if key.dtype == "float32")
    name, call = next((name, call) for name, call in calls_of(base, key).items() if len(tensors_of(call)) > 1)
    planned = Planned(key, name, "float32", levels)
    assert set(levels) <= {*levels_of(at_levels(base, planned, call))}


def test_a_call_in_another_dtype_has_values_of_every_kind() -> None:
    case = Case(torch.add, (torch.tensor([[1.0, -2.0], [3.0, -4.0]]), torch.tensor([1])))
    as_bool, positions = in_dtype(case, "float32", "bool").args
    assert as_bool.tolist() == [[True, False], [True, False]]
    assert positions is case.args[1]
    as_complex = in_dtype(case, "float32", "complex64").args[0]
    assert torch.equal(as_complex.real, case.args[0])
    assert as_complex.imag.all()
    assert not torch.equal(as_complex.real, as_complex.imag)


def test_no_call_is_made_behind_the_last_that_is_looked_for() -> None:
    first, second, *_ = calls_of(SOURCE, KEY)
    assert [*calls_of(SOURCE, KEY, {second})] == [first, second]


def test_every_source_of_the_plan_is_a_base() -> None:
    planning = [source for source in case_sources(()).values() if isinstance(source, PlannedPairSource)]
    made = Counter(group.source for source in planning for group in source.groups())
    assert made.keys() == {"planned pairs", "module planned pairs", "schema planned pairs"}
    bases = {base for source in planning for base in source.bases}
    assert {row.base.source for row in ROWS} <= bases == set(BASES)
