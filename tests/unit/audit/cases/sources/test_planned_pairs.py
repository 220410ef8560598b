"""Calls at further levels by a recorded plan."""

from __future__ import annotations

import torch

from mpsmith.audit.cases.covering.levels import levels_of
from mpsmith.audit.cases.sources.opinfo import OpInfoSource
from mpsmith.audit.cases.sources.planned_pairs import PLAN, PlannedPairSource, calls_of, parsed, written
from mpsmith.audit.cases.sources.schema import SchemaSource
from mpsmith.audit.model.group import GroupKey
from mpsmith.audit.model.selection import Samples

ROWS = parsed(PLAN.read_text())


def test_each_line_of_the_plan_reads_as_it_is_written() -> None:
    assert written(ROWS) == PLAN.read_text()
    assert len(set(ROWS)) == len(ROWS) > 1_000


def test_a_planned_call_is_at_its_levels_and_the_same_for_every_seed() -> None:
    source = PlannedPairSource("planned pairs", OpInfoSource())
    key = next(key for key in source.groups() if (key.operator, key.dtype) == ("masked.std", "float32"))
    torch.manual_seed(1)
    cases = list(source.cases(key, Samples.DEFAULT))
    rows = [each for each in ROWS if each.base.operator == "masked.std"]
    wanted = [dict(each.levels) for each in rows if each.base.source == "opinfo" and each.dtype == "float32"]
    for case, levels in zip(cases, wanted, strict=True):
        assert levels.items() & set(levels_of(case))
    torch.manual_seed(2)
    for case, again in zip(cases, source.cases(key, Samples.DEFAULT), strict=True):
        assert torch.equal(case.args[0].nan_to_num(), again.args[0].nan_to_num())


def test_the_sources_still_make_nearly_all_calls_of_the_plan() -> None:
    sources = {source.name: source for source in (OpInfoSource(), SchemaSource())}
    by_group: dict[GroupKey, set[str]] = {}
    for each in ROWS:
        by_group.setdefault(each.base, set()).add(each.call)
    groups = [key for key in by_group if key.source in sources][::10]
    missing = sum(len(by_group[key] - calls_of(sources[key.source], key).keys()) for key in groups)
    assert missing <= 0.05 * sum(len(by_group[key]) for key in groups), "plan again: docs/reports.md, Pairs of levels"
