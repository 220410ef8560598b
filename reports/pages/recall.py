"""The page of the self-test: which injected faults an audit finds, class by class."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from ..table import Cell, Document, Table
from .page import PageInputs

if TYPE_CHECKING:
    from ...audit.self_test.findings import FaultFinding
    from ...audit.self_test.whole_run import SelfTest

RESULTS = ("found", "misattributed", "missed")
FAULTS, SEED = 500, 20261129


def document(inputs: PageInputs) -> Document:
    """The page of a self-test with FAULTS faults."""
    from ...audit.self_test.whole_run import SelfTestOptions, self_test

    with tempfile.TemporaryDirectory() as folder:
        return recall_document(
            self_test(SelfTestOptions(FAULTS, SEED, (), inputs.workers), Path(folder), inputs.report)
        )


def recall_document(done: SelfTest) -> Document:
    """The page of one self-test."""
    counts = done.counts()
    rows: list[tuple[Cell, ...]] = [
        (name, *(by_result[result] for result in RESULTS)) for name, by_result in counts.items()
    ]
    totals: list[int] = [sum(by_result[result] for by_result in counts.values()) for result in RESULTS]
    return Document(
        "What the auditor finds",
        [
            f"{len(done.findings)} generated faults in the **simulated** mps device, seed {done.options.seed}:"
            f" {done.share('found'):.1%} found, {done.share('misattributed'):.1%} attributed to another operator,"
            f" {len(done.false_alarms)} false positives in {done.executed_clean:,} cases without faults.",
            f"`mpsmith self-test --faults {done.options.faults} --seed {done.options.seed}` runs the same faults.",
        ],
        [
            Table("Faults by class", ("faults", *RESULTS), (*rows, ("all", *totals))),
            Table(
                "Not found",
                ("result", "fault", "a call that shows it", "attributed to"),
                tuple(_row(finding) for finding in done.findings if finding.result != "found"),
                code=frozenset({"fault", "a call that shows it"}),
            ),
        ],
    )


def _row(finding: FaultFinding) -> tuple[str, ...]:
    planted = finding.planted
    call = f"{planted.trigger.scenario}: {planted.trigger.call}"
    return finding.result, str(planted.fault), call, ", ".join(finding.blamed)
