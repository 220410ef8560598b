"""The page that says how much of what is put into the simulated device the auditor finds, class by class."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ..audit.self_test import SelfTest
    from ..audit.self_test.findings import FaultFinding

RESULTS = ("found", "misattributed", "missed")


def recall_page(done: SelfTest) -> str:
    """The tables of one self-test in Markdown."""
    counts = done.counts()
    totals = [sum(found[result] for found in counts.values()) for result in RESULTS]
    lines = [
        "# What the auditor finds",
        "",
        f"{len(done.findings)} generated faults in the **simulated** mps device, seed {done.asked.seed}:"
        f" {done.share('found'):.1%} found, {done.share('misattributed'):.1%} put down to another operator,"
        f" {len(done.false_alarms)} false alarms in {done.executed_clean:,} cases without faults.",
        "",
        f"`mpsmith self-test --faults {done.asked.faults} --seed {done.asked.seed} --markdown FILE` writes this page.",
        "",
        "| faults | found | misattributed | missed |",
        "| --- | ---: | ---: | ---: |",
        *(_row(name, [found[result] for result in RESULTS]) for name, found in counts.items()),
        _row("**all**", totals),
    ]
    others = [finding for finding in done.findings if finding.result != "found"]
    if others:
        lines += [
            "",
            "## Not found",
            "",
            "| result | fault | a call that shows it | blamed |",
            "| --- | --- | --- | --- |",
        ]
        lines += [_miss(finding) for finding in others]
    return "\n".join(lines) + "\n"


def _row(name: str, numbers: list[int]) -> str:
    return f"| {name} | {' | '.join(str(number or '') for number in numbers)} |"


def _miss(finding: FaultFinding) -> str:
    planted = finding.planted
    blamed = ", ".join(f"`{name}`" for name in finding.blamed)
    return f"| {finding.result} | `{planted.fault}` | {planted.trigger.scenario}: `{planted.trigger.call}` | {blamed} |"
