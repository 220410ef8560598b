"""The page of our kernels: the operators that they replace, their status and evidence."""

from __future__ import annotations

from collections.abc import Mapping

from ...audit.findings.results import AuditSummary
from ...registry.model import DEVICES, Entry
from ..operator_advice import LACKING
from ..table import Cell, Table


def kernel_table(registry: Mapping[str, Entry], summary: AuditSummary, since: Mapping[str, str]) -> Table:
    """Each operator with a kernel of mpsmith. `since`: the first release with a native kernel."""
    verdicts = {operator.name: operator.verdict.value for operator in summary.operators}
    rows: list[tuple[Cell, ...]] = []
    for name, entry in sorted(registry.items(), key=lambda item: (item[1].kernel or "", item[0])):
        if entry.kernel is None:
            continue
        evidence = [(device, entry.evidence[device]) for device in DEVICES if device in entry.evidence]
        rows.append(
            (
                name,
                entry.kernel,
                entry.current_status.value if entry.current_status else "",
                verdicts.get(name, "not audited"),
                since.get(name, ""),
                "; ".join(f"{device}: {', '.join(shown.checks)}" for device, shown in evidence),
                ", ".join(evidence[0][1].dtypes) if evidence else "",
                entry.pull_request or entry.issue or "",
            )
        )
    return Table(
        "Kernels of mpsmith",
        ("operator", "family", "status", "without it", "torch's own since", "what showed it", "dtypes", "upstream"),
        tuple(rows),
        "`import mpsmith.kernels` registers those that are implemented, verified or upstreamed, for what this torch "
        "lacks. Implemented: passed on the simulated device; verified: on a Mac.",
        frozenset({"operator", "family"}),
        {str(row[-1]): str(row[-1]) for row in rows if str(row[-1]).startswith("https://")},
    )


def gap_table(summary: AuditSummary, since: Mapping[str, str]) -> Table:
    """Operators that have no kernel on mps, neither torch's nor ours."""
    rows: list[tuple[Cell, ...]] = [
        (
            operator.name,
            operator.verdict.value,
            since.get(operator.name, ""),
            operator.registered.upstream or "" if operator.registered else "",
        )
        for operator in summary.operators
        if operator.verdict in LACKING and not (operator.registered and operator.registered.kernel)
    ]
    rows.sort(key=lambda row: str(row[0]).removeprefix("aten::").startswith("_"))
    return Table(
        "Gaps without a kernel of ours",
        ("operator", "verdict", "torch's own from", "upstream"),
        tuple(rows),
        "`mpsmith next` ranks them, `mpsmith scaffold OPERATOR` begins one.",
        frozenset({"operator"}),
    )
