"""Which groups a run under torch.compile has, from which sources, and how one of its cases is made smaller."""

from __future__ import annotations

import pytest

from mpsmith.audit.compiled.verdicts import CompiledOutcome, CompiledVerdict
from mpsmith.audit.model.case import Case
from mpsmith.audit.model.group import COMPILED, DYNAMIC
from mpsmith.audit.model.selection import Settings, Shapes
from mpsmith.audit.model.verdicts import CaseVerdict, Outcome
from mpsmith.audit.running.compiled import (
    SOURCES,
    SameVerdict,
    compiled_groups,
    compiled_sources,
    require_compiler,
    with_own_sources,
)
from mpsmith.simulator.clang import CompilerMissingError
from mpsmith.simulator.fallback_recorders import CounterRecorder
from mpsmith.simulator.opening import MpsDevice
from support.stores import opinfo


@pytest.mark.parametrize(
    ("shapes", "modes"), [(Shapes.STATIC, [COMPILED]), (Shapes.DYNAMIC, [DYNAMIC]), (Shapes.BOTH, [COMPILED, DYNAMIC])]
)
def test_a_group_for_each_way_to_see_sizes(shapes: Shapes, modes: list[str]) -> None:
    assert [key.mode for key in compiled_groups([opinfo("add")], shapes)] == modes


def test_its_own_sources_unless_some_are_named() -> None:
    assert with_own_sources(Settings()).sources == SOURCES
    assert with_own_sources(Settings(sources=("layouts",))).sources == ("layouts",)
    assert set(compiled_sources()) <= set(SOURCES)


def test_compiled_settings_are_recorded() -> None:
    settings = Settings(compiled=Shapes.BOTH)
    assert Settings.from_recorded(settings.recorded()).compiled is Shapes.BOTH
    assert "compiled" not in Settings().recorded()
    assert Settings.from_recorded(Settings().recorded()).compiled is None


def test_without_a_compiler_no_case_is_begun(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each case would be refused for the same reason."""
    monkeypatch.setattr("mpsmith.simulator.clang.compiler.locate", lambda: None)
    with pytest.raises(CompilerMissingError, match="pip install"):
        require_compiler(MpsDevice(simulated=True, profile="2.13.0", recorder=CounterRecorder()))
    require_compiler(MpsDevice(simulated=False, profile=None, recorder=CounterRecorder()))


class TestShownAlike:
    def test_other_verdicts_are_not_evidence(self) -> None:
        wrong = CompiledOutcome(CompiledVerdict.WRONG, Outcome(CaseVerdict.WRONG), reason="a", source="first")
        rejected = CompiledOutcome(CompiledVerdict.REJECTED, Outcome(CaseVerdict.WRONG), source="second")
        outcomes = iter((wrong, rejected, wrong))
        alike = SameVerdict(lambda case: next(outcomes))
        case = Case(len)
        assert (alike(case).verdict, alike(case).verdict) == (CaseVerdict.WRONG, CaseVerdict.REFERENCE_FAILED)
        assert (alike(case).message, alike.source) == ("wrong, a", "first")

    def test_a_race_is_shrunk_although_its_values_are_right(self) -> None:
        race = CompiledOutcome(CompiledVerdict.RACE, Outcome(CaseVerdict.PASSED), reason="data race")
        assert SameVerdict(lambda case: race)(Case(len)).verdict is CaseVerdict.WRONG

    def test_a_right_result_is_not_shrunk(self) -> None:
        right = CompiledOutcome(CompiledVerdict.METAL, Outcome(CaseVerdict.PASSED))
        assert SameVerdict(lambda case: right)(Case(len)).verdict is CaseVerdict.REFERENCE_FAILED
