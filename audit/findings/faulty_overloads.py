"""The overloads at fault: failing cases that no rule explains are attributed to them."""

from __future__ import annotations

from ..model.selection import dtype_position
from ..model.verdicts import CASE_SEVERITY
from .evidence import CaseReference, DtypeFindings, OverloadFindings, RunEvidence, in_order_of_severity
from .results import FaultyOverload


def at_fault(evidence: RunEvidence) -> tuple[FaultyOverload, ...]:
    """The overloads at fault in a run: certain ones before suspects, then by severity and number of cases."""
    faulty = [_faulty(name, findings) for name, findings in evidence.overloads.items() if findings.faults]
    return tuple(sorted(faulty, key=_severity_key))


def message_at_fault(case: CaseReference) -> str:
    """The message of the inner call at fault, if it is known; else that of the case."""
    return case.message if case.at_fault is None else f"{case.at_fault.message}, called with {case.at_fault.call}"


def _faulty(name: str, findings: OverloadFindings) -> FaultyOverload:
    together = DtypeFindings()
    for of_dtype in findings.faults.values():
        together.add_all(of_dtype)
    cases = in_order_of_severity(together.cases)
    shown = [together.worst[verdict] for verdict in cases]
    example = next((case for case in shown if case.at_fault is not None), shown[0])
    return FaultyOverload(
        overload=name,
        cases=cases,
        dtypes=tuple(sorted(findings.faults, key=dtype_position)),
        entries=tuple(sorted(findings.fault_entries)),
        example=example.label,
        message=example.message if example.at_fault is None else example.at_fault.message,
        call=example.at_fault.call if example.at_fault else "",
        or_one_of=() if findings.at_fault else tuple(sorted(findings.shared)),
        explains=dict(sorted(findings.explains.items())),
        grade=example.grade,
    )


def _severity_key(faulty: FaultyOverload) -> tuple[bool, int, int, str]:
    return bool(faulty.or_one_of), CASE_SEVERITY.index(next(iter(faulty.cases))), -faulty.total, faulty.overload
