"""A small audit with a case of every kind, and its summary."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from mpsmith.audit.findings.results import AuditSummary, RegistryStatus
from mpsmith.audit.findings.summary import summarize
from mpsmith.audit.model.verdicts import CaseVerdict, Outcome
from mpsmith.audit.releases.surface.overloads import Dispatch
from mpsmith.audit.releases.surface.reachability import Unreachable
from mpsmith.audit.store.records import ModuleRow, ModuleStatus
from mpsmith.audit.store.store import Store
from support.stores import begun, opinfo
from support.surfaces import overload, surface

HOSTILE = 'raises <script>alert("1")</script> | `a` *b* </script>'


SURFACE = surface(
    overload("relu", Dispatch.NATIVE, has_autograd_formula=True),
    overload("sum", Dispatch.NATIVE),
    overload("cos", Dispatch.NATIVE),
    overload("flip", Dispatch.COMPOSITE_IMPLICIT),
    overload("mode", Dispatch.MISSING),
    overload("heaviside", Dispatch.MISSING),
    overload("mkldnn_linear", Dispatch.MISSING, reach=Unreachable("mkldnn", "for x86 only")),
    overload("sin", Dispatch.NATIVE),
)

CASES: dict[tuple[str, str, str], list[Outcome]] = {
    ("relu", "float32", "fallback"): [Outcome(CaseVerdict.PASSED, backward=True)] * 3,
    ("relu", "int8", "fallback"): [Outcome(CaseVerdict.PASSED)] * 2,
    ("sum", "float32", "fallback"): [Outcome(CaseVerdict.PASSED), Outcome(CaseVerdict.WRONG, message=HOSTILE)],
    ("cos", "float32", "fallback"): [Outcome(CaseVerdict.PASSED)],
    ("cos", "bool", "fallback"): [Outcome(CaseVerdict.DTYPE_GAP, message="not implemented for 'Bool'")],
    ("flip", "float32", "fallback"): [Outcome(CaseVerdict.PASSED)],
    ("mode", "float32", "fallback"): [Outcome(CaseVerdict.FALLBACK, fallbacks=("aten::mode",))] * 4,
    ("mode", "float32", "strict"): [Outcome(CaseVerdict.MISSING, message="no kernel", fallbacks=("aten::mode",))] * 4,
    ("unknown.thing", "float32", "fallback"): [Outcome(CaseVerdict.CRASH, message="signal 11")],
    ("sin", "float32", "fallback"): [Outcome(CaseVerdict.SKIPPED, message="too large")],
}


def make_summary(
    path: Path, *, simulated: bool = True, finished: bool = True, cases: bool = True, shuffled: bool = False
) -> AuditSummary:
    """The report of one run; `shuffled`: of the same findings, in a later run, on another host, in another order."""
    with Store.create(path) as store:
        if shuffled:
            begun(store).add(opinfo("sum"), Outcome(CaseVerdict.WRONG), done=False)
        host = {"chip": "other", "os": "otherOS"} if shuffled else {"chip": "Test M9", "os": "testOS"}
        variables = {"PYTORCH_MPS_FAST_MATH": "1"}
        environment = {"simulated": simulated, "profile": None, "variables": variables, **host}
        recording = begun(store, {"seed": 0, "ops": [], "dtypes": []}, environment)
        run = recording.run
        step, seconds = (-1, 9.0) if shuffled else (1, 1.0)
        store.plan(run.id, [opinfo(*group) for group in list(CASES)[::step]])
        for (name, dtype, mode), outcomes in list(CASES.items())[::step] if cases else ():
            calls = {name: True} if f"aten::{name}" in SURFACE.by_name and name != "sin" else {}
            for position, outcome in list(enumerate(outcomes))[::step]:
                timed = replace(outcome, seconds=seconds)
                recording.add(opinfo(name, dtype, mode), timed, inputs=f"({dtype}[2, 3])", calls=calls, start=position)
        for name in ("torch.mps.a", "torch.mps.b")[::step]:
            store.add_module_row(run.id, ModuleRow(name, ModuleStatus.WORKS))
        if finished:
            recording.finish()
        if shuffled:
            store._connection.execute("UPDATE runs SET started = '2001-01-01T00:00:00+00:00'")
        return summarize(store, store.run(run.id), SURFACE, {"aten::mode": RegistryStatus("missing", "mode", "#77764")})
