"""The words for what became of a compiled call, and the worst of several."""

from __future__ import annotations

import pytest

from mpsmith.audit.compiled.verdicts import SEVERITY, CompiledVerdict, of_uncompiled, worst_compiled
from mpsmith.audit.model.verdicts import CaseVerdict, Outcome


class TestWorstCompiled:
    def test_every_verdict_has_its_place(self) -> None:
        assert sorted(SEVERITY) == sorted(CompiledVerdict)

    @pytest.mark.parametrize(
        ("verdicts", "worst"),
        [
            ({CompiledVerdict.METAL, CompiledVerdict.WRONG}, CompiledVerdict.WRONG),
            ({CompiledVerdict.METAL, CompiledVerdict.NO_KERNEL}, CompiledVerdict.METAL),
            ({CompiledVerdict.METAL, CompiledVerdict.ATEN}, CompiledVerdict.METAL_AND_ATEN),
            ({CompiledVerdict.ATEN, CompiledVerdict.NO_KERNEL}, CompiledVerdict.ATEN),
            ({CompiledVerdict.SKIPPED, CompiledVerdict.METAL}, CompiledVerdict.METAL),
        ],
    )
    def test_of_several(self, verdicts: set[CompiledVerdict], worst: CompiledVerdict) -> None:
        assert worst_compiled(verdicts) is worst

    def test_of_none_is_none(self) -> None:
        assert worst_compiled([]) is None


@pytest.mark.parametrize("verdict", [CaseVerdict.SKIPPED, CaseVerdict.REFERENCE_FAILED])
def test_a_call_that_was_not_executed_is_not_evidence(verdict: CaseVerdict) -> None:
    assert not of_uncompiled(Outcome(verdict)).executed


def test_a_death_keeps_its_name() -> None:
    assert of_uncompiled(Outcome(CaseVerdict.TIMEOUT)) is CompiledVerdict.TIMEOUT
    assert of_uncompiled(Outcome(CaseVerdict.CRASH)) is CompiledVerdict.CRASH
