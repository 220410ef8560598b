"""Ordinary cases find faults in the code generator of torch.compile: a sample here, and all of them in a rehearsal."""

from __future__ import annotations

from pathlib import Path

import pytest

from mpsmith.audit.cases.sources import case_sources
from mpsmith.audit.compiled.scenarios import ScenarioSource
from mpsmith.audit.model.case import CaseSource
from mpsmith.audit.releases.surface.native_functions import installed_release
from mpsmith.simulator import metal
from mpsmith.simulator.fallback_recorders import CounterRecorder
from support.generator_fault_table import FAULTS
from support.generator_faults import Found, GeneratorFault, faulty, find, installed_generator

BY_NAME = {fault.name: fault for fault in FAULTS}
MOST_CASES = 12
# Faults that show by values in `fast` mode, and one that shows in `checked` only.
SAMPLE = {
    "the minimum is the maximum": "wrong",
    "a masked load is not masked": "wrong",
    "no barrier between clearing what any() collects and the first thread that sets it": "race",
}

pytestmark = pytest.mark.skipif(not installed_release().startswith("2.13."), reason="the lines are those of torch 2.13")


@pytest.fixture(scope="module")
def sources() -> dict[str, CaseSource]:
    metal.install()
    return {**case_sources(()), ScenarioSource.name: ScenarioSource()}


def found(fault: GeneratorFault, sources: dict[str, CaseSource], folder: Path, cases: int = MOST_CASES) -> Found | None:
    return find(fault, sources, CounterRecorder(), folder, cases)


@pytest.mark.parametrize(("name", "verdict"), SAMPLE.items())
def test_ordinary_cases_find_a_fault(name: str, verdict: str, sources: dict[str, CaseSource], tmp_path: Path) -> None:
    finding = found(BY_NAME[name], sources, tmp_path)
    assert finding is not None
    assert finding.verdict == verdict


@pytest.mark.rehearsal
@pytest.mark.parametrize("name", sorted(BY_NAME.keys() - SAMPLE.keys()))
def test_ordinary_cases_find_the_other_faults(name: str, sources: dict[str, CaseSource], tmp_path: Path) -> None:
    assert found(BY_NAME[name], sources, tmp_path) is not None


def test_a_change_that_changes_nothing_is_not_found(sources: dict[str, CaseSource], tmp_path: Path) -> None:
    harmless = GeneratorFault(
        "none", "", 'return f"metal::floor({x})"', 'return f"(metal::floor({x}))"', ("opinfo:floor:float32",)
    )
    assert found(harmless, sources, tmp_path, 2) is None


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name.replace(" ", "-"))
def test_every_fault_has_its_line_in_the_installed_generator(fault: GeneratorFault) -> None:
    source = installed_generator().read_text("utf-8")
    changed = faulty(fault, source)
    assert changed != source
    compile(changed, "mps.py", "exec")
