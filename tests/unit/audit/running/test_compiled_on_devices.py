"""What a real device is not asked for under torch.compile."""

from __future__ import annotations

from typing import Any

import pytest

from mpsmith.audit.compiled.verdicts import CompiledOutcome, CompiledVerdict
from mpsmith.audit.model.case import Case
from mpsmith.audit.model.group import GroupKey
from mpsmith.audit.model.verdicts import CaseVerdict, Outcome
from mpsmith.audit.running.compiled import judged_compiled
from mpsmith.simulator.fallback_recorders import WarningRecorder
from mpsmith.simulator.opening import MpsDevice


@pytest.mark.parametrize("simulated", [True, False])
def test_only_a_simulated_device_runs_a_call_again_with_checks(
    simulated: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    given: dict[str, Any] = {}

    def compiled_call(*args: Any, **options: Any) -> CompiledOutcome:
        given.update(options)
        return CompiledOutcome(CompiledVerdict.METAL, Outcome(CaseVerdict.PASSED))

    monkeypatch.setattr("mpsmith.audit.compiled.judging.compiled_call", compiled_call)
    device = MpsDevice(simulated, "2.13.0" if simulated else None, WarningRecorder())
    key = GroupKey("opinfo", "cosh", "", "float32", "compiled")
    outcome = judged_compiled(device, key, 0, Case(abs, (1,)), 0, lambda: None)
    assert outcome.verdict is CompiledVerdict.METAL
    assert given["checked"] is simulated
