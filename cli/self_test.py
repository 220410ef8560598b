"""``mpsmith self-test``: put faults into the simulated device and see whether the auditor finds them."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Annotated, Any

import typer

from .options import AsJson
from .printing import print_json, say

if TYPE_CHECKING:
    from ..audit.self_test import SelfTest

RESULTS = ("found", "missed", "misattributed")


def self_test(
    workers: Annotated[int, typer.Option(min=1, help="Worker processes.")] = os.cpu_count() or 1,
    as_json: AsJson = False,
) -> None:
    """Audit the auditor: put faults into the simulated device; exits with 1 unless all are found, and nothing else."""
    from ..audit.self_test import self_test as run

    done = run(workers=workers, say=say)
    if as_json:
        print_json(_as_json(done))
    else:
        print(_as_text(done))
    if not done.passed:
        raise typer.Exit(1)


def _as_json(done: SelfTest) -> dict[str, Any]:
    findings = [
        {
            "class": finding.planted.fault_class.name,
            "operator": finding.planted.operator,
            "fault": str(finding.planted.fault),
            "result": finding.result,
            "cases": finding.cases,
            "others": finding.others,
            "shown_by": finding.shown_by,
        }
        for finding in done.findings
    ]
    return {
        "simulated": True,
        "passed": done.passed,
        "counts": {name: {result: counts[result] for result in RESULTS} for name, counts in done.counts().items()},
        "findings": findings,
        "accusations": done.accusations,
        "false_alarms": done.false_alarms,
        "explained": done.explained,
        "executed": done.executed,
        "executed_clean": done.executed_clean,
        "seconds": round(done.seconds, 1),
    }


def _as_text(done: SelfTest) -> str:
    from tabulate import tabulate

    counts = done.counts()
    rows = [(name, *(found[result] or "" for result in RESULTS)) for name, found in counts.items()]
    totals = [sum(found[result] for found in counts.values()) for result in RESULTS]
    lines = [
        f"self-test on the SIMULATED mps device, {done.executed:,} cases with faults in {done.seconds:.0f} s",
        tabulate([*rows, ("all", *totals)], headers=("fault", *RESULTS)),
    ]
    for finding in done.findings:
        if finding.result != "found":
            lines.append(f"{finding.result}: {finding.planted.fault} in {finding.planted.operator} {finding.shown_by}")
    lines += [f"held against an operator without a fault: {line}" for line in done.accusations]
    explained = f"{done.explained:,} more did not pass and are explained by rules"
    lines.append(f"without faults: {len(done.false_alarms)} false alarms in {done.executed_clean:,} cases; {explained}")
    lines += [f"  {line}" for line in done.false_alarms]
    return "\n".join(lines)
