"""``mpsmith compare``: what differs between two audits, case by case."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..errors import MpsmithError
from .options import AsJson
from .printing import print_json

if TYPE_CHECKING:
    from ..audit.findings.comparison import RunComparison
    from ..audit.findings.store import Run, Store

LISTED = 40


def compare(
    before: Annotated[Path, typer.Argument(help="The results store of the first audit, an SQLite file.")],
    after: Annotated[Path, typer.Argument(help="That of the second audit; it may be the same file.")],
    run: Annotated[
        int | None, typer.Option(help="The first audit's number in its store; the newest by default.")
    ] = None,
    after_run: Annotated[int | None, typer.Option(help="The second audit's number in its store.")] = None,
    every: Annotated[bool, typer.Option("--all", help=f"List every difference, not the first {LISTED}.")] = False,
    shipped: Annotated[
        bool,
        typer.Option(
            "--shipped",
            help="Only wrong results of shipped kernels, where two releases were audited: new, standing, fixed.",
        ),
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Compare two audits case by case. Exits with 1 where a case, its inputs or its verdict differ."""
    from ..audit.findings.comparison import compare_runs
    from ..audit.findings.store import Store

    with Store.open(before) as first, Store.open(after) as second:
        first_run = first.latest_run() if run is None else first.run(run)
        second_run = second.latest_run() if after_run is None else second.run(after_run)
        if shipped:
            _compare_shipped([(first, first_run), (second, second_run)], as_json)
            return
        comparison = compare_runs((first, first_run), (second, second_run))
    if as_json:
        runs = {"before": _run(before, first_run), "after": _run(after, second_run)}
        print_json({"runs": runs, **_plain(comparison)})
    else:
        print(f"before: {_described(before, first_run)}\nafter:  {_described(after, second_run)}")
        print(_text(comparison, every))
    if comparison.differences:
        raise typer.Exit(1)


def _compare_shipped(runs: list[tuple[Store, Run]], as_json: bool) -> None:
    """What became of the wrong results of shipped kernels; exits with 1 where some are new."""
    from .release_changes_text import changes_json, changes_table, changes_with_rules

    for store, run in runs:
        if not run.environment.get("shipped"):
            raise MpsmithError(
                f"run {run.id} of {store.path} launched no shipped kernels (audit with --shipped RELEASE)"
            )
    changes = changes_with_rules(runs)
    if as_json:
        print_json({"wrong_results": changes_json(changes)})
    else:
        print(changes_table(changes, [str(run.environment["shipped"]) for _, run in runs]))
    if any(change.change.value == "new" for change in changes):
        raise typer.Exit(1)


def _run(store: Path, run: Run) -> dict[str, Any]:
    return {"store": str(store), "run": run.id, "torch": run.environment["torch"], "simulated": run.simulated}


def _described(store: Path, run: Run) -> str:
    device = "the SIMULATED mps device" if run.simulated else "an mps device"
    unfinished = "" if run.finished else ", not finished"
    return f"run {run.id} of {store}, torch {run.environment['torch']} on {device}{unfinished}"


def _plain(comparison: RunComparison) -> dict[str, Any]:
    return {
        "cases": {"before": comparison.before, "after": comparison.after, "same": comparison.same},
        "by_kind": dict(sorted(comparison.by_kind.items())),
        "differences": [
            {
                "case": difference.label,
                "before": difference.before.value if difference.before else None,
                "after": difference.after.value if difference.after else None,
                "inputs_differ": difference.inputs_differ,
            }
            for difference in comparison.differences
        ],
    }


def _text(comparison: RunComparison, every: bool) -> str:
    lines = [
        f"{comparison.before:,} cases before, {comparison.after:,} after: {comparison.same:,} the same,"
        f" {len(comparison.differences):,} different"
    ]
    lines += [f"  {count:,} {kind}" for kind, count in comparison.by_kind.most_common()]
    listed = comparison.differences if every else comparison.differences[:LISTED]
    lines += [f"{difference.label}: {difference.kind}" for difference in listed]
    if left := len(comparison.differences) - len(listed):
        lines.append(f"… {left:,} more (--all lists them)")
    return "\n".join(lines)
