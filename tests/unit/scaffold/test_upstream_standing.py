"""Which of upstream's kernels ran, from a build's notes and an audit's summary."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from mpsmith.audit.model.verdicts import Grade, OverloadVerdict
from mpsmith.cli.upstream import _print_standing
from mpsmith.scaffold.upstream_standing import standings
from mpsmith.simulator.upstream.building import BuiltFile

FILES = (
    BuiltFile("Eye", ("eye.out", "eye.m_out", "eye.x", "eye.y"), "eye.so"),
    BuiltFile("Broken", ("roll",), problem="Broken.mm:1:2: error: y"),
    BuiltFile("Graph", ("relu",), problem="needs MPSGraph, which is Apple's and closed", closed=True),
)


def overload(name: str, grade: Grade | None, verdict: OverloadVerdict, executed: int) -> Any:
    return SimpleNamespace(name=f"aten::{name}", grade=grade, verdict=verdict, executed=executed, reason="1 of 2 cases")


SUMMARY: Any = SimpleNamespace(
    overloads=(
        overload("eye.out", Grade.UPSTREAM_SOURCE, OverloadVerdict.NATIVE, 5),
        overload("eye.m_out", Grade.UPSTREAM_SOURCE, OverloadVerdict.WRONG, 2),
        overload("eye.x", Grade.DISPATCH_ONLY, OverloadVerdict.NATIVE, 3),
        overload("relu", Grade.DISPATCH_ONLY, OverloadVerdict.NATIVE, 3),
    )
)


def test_an_overload_ran_where_upstreams_code_launched_something() -> None:
    eye, broken, graph = standings(FILES, SUMMARY)
    assert (eye.ran, eye.right) == (("eye.out", "eye.m_out"), ("eye.out",))
    assert eye.problems == (
        "eye.m_out: wrong: 1 of 2 cases",
        "eye.x: its cases launched nothing",
        "eye.y: no case called it",
    )
    assert (broken.built, broken.ran, broken.problems) == (False, (), ("Broken.mm:1:2: error: y",))
    assert graph.closed


def test_the_table_counts_what_was_tried(capsys: pytest.CaptureFixture[str]) -> None:
    _print_standing(standings(FILES, SUMMARY), "pipe")
    page = capsys.readouterr().out
    assert [cell.strip() for cell in page.splitlines()[2].strip("|").split("|")] == ["Eye", "yes", "4", "2", "1"]
    assert "Graph" not in page
    assert "- Broken: Broken.mm:1:2: error: y\n" in page
    assert (
        "1 of 2 files built, 1 more need what is Apple's and closed; 2 of 4 overloads ran, 1 right; simulated" in page
    )
