"""``mpsmith self-test``: put faults into the simulated device and see whether the auditor finds them."""

from __future__ import annotations

import os
import random
import shlex
import shutil
from typing import TYPE_CHECKING, Annotated, Any

import typer

from .options import AsJson, values_of
from .printing import print_json, say

if TYPE_CHECKING:
    from ..audit.self_test.findings import FaultFinding
    from ..audit.self_test.whole_run import SelfTest

RESULTS = ("found", "misattributed", "missed")


def self_test(
    faults: Annotated[int, typer.Option(min=1, max=10_000, help="How many faults.")] = 60,
    seed: Annotated[
        int | None, typer.Option(min=0, help="Which faults; by default a random seed, which is printed.")
    ] = None,
    classes: Annotated[
        list[str] | None,
        typer.Option(
            help="Only classes with this in their names, such as gradient or NaN; repeated or joined by commas."
        ),
    ] = None,
    workers: Annotated[int, typer.Option(min=1, help="Worker processes.")] = os.cpu_count() or 1,
    as_json: AsJson = False,
) -> None:
    """Audit the auditor: inject faults into the simulated device; exits with 1 if too few are found.

    With the same seed it continues a stopped run.
    """
    from ..audit.self_test.classes import chosen as classes_named
    from ..cache import cache_folder, fingerprint, fingerprint_of_code

    names = values_of(classes, "--classes")
    classes_named(names)  # before torch is imported

    from ..audit.self_test.whole_run import SelfTestOptions
    from ..audit.self_test.whole_run import self_test as run
    from ..simulator.opening import require_simulation

    require_simulation("self-test")
    chosen = random.SystemRandom().randrange(1_000_000) if seed is None else seed
    options = SelfTestOptions(faults, chosen, names, workers)
    say(f"self-test: {faults} faults by --seed {chosen}")
    key = fingerprint(fingerprint_of_code("audit", "simulator"), str(faults), str(chosen), *options.classes)
    folder = cache_folder() / "self-test" / key[:16]
    folder.mkdir(parents=True, exist_ok=True)
    try:
        done = run(options, folder, say)
    except KeyboardInterrupt:
        same = "".join(f" --classes {shlex.quote(name)}" for name in options.classes)
        say(f"stopped; continue with: mpsmith self-test --faults {faults} --seed {chosen}{same}")
        raise typer.Exit(130) from None
    shutil.rmtree(folder)
    if as_json:
        print_json(_as_json(done))
    else:
        print(_as_text(done))
    if not done.passed:
        raise typer.Exit(1)


def _as_json(done: SelfTest) -> dict[str, Any]:
    return {
        "simulated": True,
        "passed": done.passed,
        "faults": len(done.findings),
        "seed": done.options.seed,
        "recall": round(done.share("found"), 4),
        "wrong_blame": round(done.share("misattributed"), 4),
        "counts": {name: {result: counts[result] for result in RESULTS} for name, counts in done.counts().items()},
        "findings": [_finding(finding) for finding in done.findings],
        "false_alarms": done.false_alarms,
        "explained": done.explained,
        "executed": done.executed,
        "executed_clean": done.executed_clean,
        "rounds": done.rounds,
        "seconds": round(done.seconds, 1),
    }


def _finding(finding: FaultFinding) -> dict[str, Any]:
    planted = finding.planted
    return {
        "number": planted.number,
        "class": planted.class_name,
        "fault": str(planted.fault),
        "trigger": planted.trigger.call,
        "scenario": planted.trigger.scenario,
        "result": finding.result,
        "cases": finding.cases,
        "blamed": finding.blamed,
        "shown_by": finding.shown_by,
        "audited": finding.audited,
    }


def _as_text(done: SelfTest) -> str:
    from tabulate import tabulate

    from ..audit.self_test.whole_run import MAX_MISATTRIBUTED, MIN_RECALL
    from ..reports.counting import counted

    counts = done.counts()
    rows = [(name, *(by_result[result] or "" for result in RESULTS)) for name, by_result in counts.items()]
    totals = [sum(by_result[result] for by_result in counts.values()) for result in RESULTS]
    lines = [
        f"self-test on the SIMULATED mps device, seed {done.options.seed}: {done.executed:,} cases with faults"
        f" in {done.rounds} rounds and {done.seconds:.0f} s",
        tabulate([*rows, ("all", *totals)], headers=("faults", *RESULTS)),
    ]
    for finding in done.findings:
        if finding.result != "found":
            lines += [
                f"{finding.result}: {finding.planted.fault}",
                f"  shown by {finding.planted.trigger.scenario}: {finding.planted.trigger.call}",
            ]
            if finding.blamed:
                lines.append(f"  attributed to: {', '.join(finding.blamed)}; {finding.shown_by}")
    lines.append(
        f"recall {done.share('found'):.1%} (at least {MIN_RECALL:.0%}),"
        f" misattributed {done.share('misattributed'):.1%} (at most {MAX_MISATTRIBUTED:.0%}),"
        f" {counted(len(done.false_alarms), 'false positive')} in {done.executed_clean:,} cases without faults;"
        f" {done.explained:,} more did not pass and are explained by rules"
    )
    lines += [f"  {alarm}" for alarm in done.false_alarms]
    return "\n".join(lines)
