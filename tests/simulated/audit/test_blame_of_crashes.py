"""A crash inside a composite is attributed to the inner call, by rerunning the case in another worker."""

from __future__ import annotations

from pathlib import Path

from mpsmith.audit.findings.audited_surface import audited_surface
from mpsmith.audit.findings.summary import summarize
from mpsmith.audit.model.selection import Samples, Settings
from mpsmith.audit.model.verdicts import AtFault, CaseVerdict
from mpsmith.audit.running.runner import run_audit
from mpsmith.audit.store.store import Store
from mpsmith.simulator.opening import DeviceKind


def test_an_abort_inside_a_composite(tmp_path: Path) -> None:
    settings = Settings(
        samples=Samples.QUICK,
        ops=("logsumexp",),
        dtypes=("float32",),
        sources=("opinfo",),
        device=DeviceKind.SIMULATED,
        workers=1,
        faults=("aten::amax: segfaults when above(self, 20)",),
    )
    path = tmp_path / "store.sqlite"
    run = run_audit(settings, path, resume=False, say=lambda text: None)
    with Store.open(path) as store:
        crashed = list(store.cases(run.id, "c.verdict = 'crash'"))
        summary = summarize(store, run, audited_surface(run))
    assert crashed
    assert crashed[0].at_fault == AtFault("aten::amax", "(float32[5, 5], [0, 1], True)", "ends the process: SIGSEGV")
    broken = [o.name for o in summary.overloads if o.cases.get(CaseVerdict.CRASH)]
    assert broken == ["aten::amax"] == [faulty.overload for faulty in summary.at_fault]
