"""An audit under torch.compile from its settings to its summary, in a worker process."""

from __future__ import annotations

from pathlib import Path

import pytest

from mpsmith.audit.compiled.verdicts import CompiledVerdict, FaultyStage
from mpsmith.audit.findings.compiled.summary import summarize_compiled
from mpsmith.audit.model.selection import Settings, Shapes
from mpsmith.audit.running.runner import run_audit
from mpsmith.audit.store.store import Store
from mpsmith.simulator.opening import DeviceKind


def test_a_wrong_result_is_in_the_summary_with_its_metal(tmp_path: Path) -> None:
    settings = Settings(
        device=DeviceKind.SIMULATED, workers=1, sources=("compiled situations",), ops=("where",), compiled=Shapes.BOTH
    )
    path = tmp_path / "store.sqlite"
    said: list[str] = []
    run = run_audit(settings, path, resume=False, say=said.append)
    with Store.open(path) as store:
        assert {group.key.mode for group in store.groups(run.id)} == {"compiled", "dynamic"}
        summary = summarize_compiled(store, store.latest_run(compiled=True))
    assert "every call under torch.compile" in said[0]
    (finding,) = summary.findings
    assert (finding.verdict, finding.faulty_stage, finding.cases) == (CompiledVerdict.WRONG, FaultyStage.INDUCTOR, 2)
    assert finding.example == "compiled situations:where.beyond 32 bits:int64:0:compiled"
    assert "kernel void generated_kernel_0" in finding.source


def test_a_call_that_is_never_compiled_to_its_end_costs_one_case(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parent))  # of the workers
    monkeypatch.syspath_prepend(str(Path(__file__).parent))
    settings = Settings(
        device=DeviceKind.SIMULATED,
        workers=1,
        timeout=16,
        ops=("compiles_for_ever",),
        imports=("hostile_cases",),
        compiled=Shapes.STATIC,
        sources=("hostile to compiling",),
    )
    path = tmp_path / "store.sqlite"
    run = run_audit(settings, path, resume=False, say=lambda text: None)
    with Store.open(path) as store:
        right, slow, large, after, endless = [case.compiled for case in store.compiled_cases(run.id)]
    assert right.verdict is after.verdict is CompiledVerdict.METAL
    assert slow.verdict is large.verdict is CompiledVerdict.REFERENCE_FAILED
    assert slow.reason.endswith("CompilerLimitError: it takes the compiler more than 1 s of processor time")
    assert "InternalCompilerError: the compiler failed without an error message" in large.reason
    assert endless.verdict is CompiledVerdict.TIMEOUT
