"""The audit's part of the evidence: from a results store to verdicts with their counts and the cases that fail."""

from __future__ import annotations

from collections import Counter

from ...audit.findings.audited_surface import audited_surface
from ...audit.findings.measurements import Verdicts, measurements_of
from ...audit.findings.results import OverloadSummary, RunVerdicts
from ...audit.findings.summary import verdicts
from ...audit.model.verdicts import CaseVerdict
from ...audit.store.records import Run
from ...audit.store.store import Store
from .privacy import PrivateNames, message_of
from .schema import LISTED, LONGEST_MESSAGE, STRICT, AuditPart, DtypeRow, FailingCases, OverloadRow


def audit_part(store: Store, run: Run, identity: PrivateNames) -> AuditPart:
    """What a run showed; `identity` is taken out of its messages."""
    found = verdicts(store, run, audited_surface(run))
    return AuditPart(
        simulated=run.simulated,
        samples=str(run.settings.get("samples", "default")),
        seed=int(run.settings.get("seed", 0)),
        ops=list(run.settings.get("ops", ())),
        dtypes=list(run.settings.get("dtypes", ())),
        sources=list(run.settings.get("sources", ())),
        complete=found.run.complete,
        executed=found.run.executed,
        cases=_totals(found),
        overloads=overload_rows(found),
        failing=_failing(store, run, identity),
    )


def _totals(found: RunVerdicts) -> dict[CaseVerdict, int]:
    together: Counter[CaseVerdict] = Counter()
    for cases in found.totals.values():
        together.update(cases)
    return {verdict: together[verdict] for verdict in CaseVerdict if together[verdict]}


def overload_rows(summary: Verdicts) -> dict[str, OverloadRow]:
    """The overloads with evidence of the operators that were measured: see `measurements_of`."""
    measured = {each.operator for each in measurements_of(summary)}
    return {o.name: _row(o) for o in summary.overloads if o.dtypes and o.operator in measured}


def _row(overload: OverloadSummary) -> OverloadRow:
    dtypes = {dtype: DtypeRow(verdict=each.verdict, cases=dict(each.cases)) for dtype, each in overload.dtypes.items()}
    return OverloadRow(dispatch=overload.dispatch, through=list(overload.through), dtypes=dtypes)


def _failing(store: Store, run: Run, identity: PrivateNames) -> dict[str, list[FailingCases]]:
    """The cases of the verdicts that are listed, by group; those that show the same together."""
    positions: dict[tuple[str, CaseVerdict, str], list[int]] = {}
    clean: dict[str, str] = {}
    for key, position, verdict, said in store.messages(run.id, LISTED):
        message = clean.get(said)
        if message is None:
            message = clean[said] = message_of(said, identity, LONGEST_MESSAGE)
        group = key.label + (STRICT if key.mode == "strict" else "")
        positions.setdefault((group, verdict, message), []).append(position)
    failing: dict[str, list[FailingCases]] = {}
    for (group, verdict, message), at in positions.items():
        failing.setdefault(group, []).append(FailingCases(verdict=verdict, message=message, positions=at))
    return failing
