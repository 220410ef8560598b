"""A sample of the faults that `mpsmith compiled faults` puts into the code generator, which takes minutes for all."""

from __future__ import annotations

from pathlib import Path

import pytest

from mpsmith.audit.cases.sources.opinfo import OpInfoSource
from mpsmith.audit.compiled.scenarios import ScenarioSource
from mpsmith.audit.self_test.compiled.faults import GeneratorFault, find
from mpsmith.audit.self_test.compiled.table import FAULTS
from mpsmith.errors import MpsmithError
from mpsmith.simulator import metal
from mpsmith.simulator.fallback_recorders import CounterRecorder

BY_NAME = {fault.name: fault for fault in FAULTS}
MOST_CASES = 12


@pytest.fixture(scope="module")
def sources() -> dict[str, OpInfoSource | ScenarioSource]:
    metal.install()
    return {"opinfo": OpInfoSource(), "compiled situations": ScenarioSource()}


@pytest.mark.parametrize(
    ("name", "verdict"),
    [
        ("the minimum is the maximum", "wrong"),
        ("a masked load is not masked", "wrong"),
        ("no barrier between clearing what any() collects and the first thread that sets it", "race"),
    ],
)
def test_ordinary_cases_find_a_fault(
    name: str, verdict: str, sources: dict[str, OpInfoSource | ScenarioSource], tmp_path: Path
) -> None:
    found = find(BY_NAME[name], sources, CounterRecorder(), tmp_path, MOST_CASES)
    assert found is not None
    assert found.verdict == verdict


def test_a_change_that_changes_nothing_is_not_found(
    sources: dict[str, OpInfoSource | ScenarioSource], tmp_path: Path
) -> None:
    harmless = GeneratorFault(
        "none", "", 'return f"metal::floor({x})"', 'return f"(metal::floor({x}))"', ("opinfo:floor:float32",)
    )
    assert find(harmless, sources, CounterRecorder(), tmp_path, 2) is None


def test_a_group_that_no_source_has_is_named(sources: dict[str, OpInfoSource | ScenarioSource], tmp_path: Path) -> None:
    lost = GeneratorFault("none", "", "x", "y", ("opinfo:nothing:float32",))
    with pytest.raises(MpsmithError, match=r"^the source 'opinfo' has no group nothing"):
        find(lost, sources, CounterRecorder(), tmp_path, 2)
