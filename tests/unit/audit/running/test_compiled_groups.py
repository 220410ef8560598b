"""Which groups a run under torch.compile has, and from which sources."""

from __future__ import annotations

import pytest

from mpsmith.audit.group import COMPILED, DYNAMIC
from mpsmith.audit.running.compiled import SOURCES, compiled_groups, compiled_sources, with_own_sources
from mpsmith.audit.selection import Settings, Shapes
from support.stores import opinfo


@pytest.mark.parametrize(
    ("shapes", "modes"),
    [(Shapes.STATIC, [COMPILED]), (Shapes.DYNAMIC, [DYNAMIC]), (Shapes.BOTH, [COMPILED, DYNAMIC])],
)
def test_a_group_for_each_way_to_see_sizes(shapes: Shapes, modes: list[str]) -> None:
    assert [key.mode for key in compiled_groups([opinfo("add")], shapes)] == modes


def test_its_own_sources_unless_some_are_named() -> None:
    assert with_own_sources(Settings()).sources == SOURCES
    assert with_own_sources(Settings(sources=("layouts",))).sources == ("layouts",)
    assert set(compiled_sources()) <= set(SOURCES)


def test_the_lane_is_recorded_where_it_is_asked_for() -> None:
    settings = Settings(compiled=Shapes.BOTH)
    assert Settings.from_recorded(settings.recorded()).compiled is Shapes.BOTH
    assert "compiled" not in Settings().recorded()
    assert Settings.from_recorded(Settings().recorded()).compiled is None
