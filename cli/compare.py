"""``mpsmith compare``: what differs between two audits, files of evidence or releases; new wrong results first."""

from __future__ import annotations

from contextlib import ExitStack
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..errors import MpsmithError
from .compare_text import LISTED, markdown_lines, plain, text_lines
from .options import AsJson
from .printing import print_json

if TYPE_CHECKING:
    from ..audit.store.comparison import RunComparison
    from ..audit.store.records import Run
    from ..audit.store.store import Store
    from ..reports.evidence.comparing import Differences


class FailOn(str, Enum):
    """Which difference makes the command exit with 1."""

    DIFFERENCE = "difference"
    WORSE = "worse"
    WRONG = "wrong"
    NEVER = "never"


def compare(
    before: Annotated[
        str,
        typer.Argument(
            help="A results store (FILE, or FILE:N for run N), evidence (.json.gz), or a torch release such as 2.13.0."
        ),
    ],
    after: Annotated[str, typer.Argument(help="What to compare it with.")],
    shipped: Annotated[
        bool,
        typer.Option(
            "--shipped",
            help="Only wrong results of shipped kernels, if two releases were audited: new, unchanged, fixed.",
        ),
    ] = False,
    fail_on: Annotated[
        FailOn, typer.Option(help="Exit with 1 at any difference, if an overload is worse, or if one is newly wrong.")
    ] = FailOn.DIFFERENCE,
    markdown: Annotated[bool, typer.Option("--markdown", help="Print Markdown.")] = False,
    as_json: AsJson = False,
) -> None:
    """Show which verdicts changed, by overload and dtype: new wrong results first. Exits with 1 at a difference.

    Two results stores are compared case by case too. A release is compared by its wheel's declarations.
    """
    from ..audit.store.comparison import compare_runs
    from ..reports.evidence.comparing import differences, side_of, side_of_run

    with ExitStack() as opened:
        runs = [_opened(name, opened) for name in (before, after)]
        stores = [run for run in runs if run is not None]
        if shipped:
            if len(stores) < 2:
                raise MpsmithError("--shipped compares two results stores")
            _compare_shipped(stores, as_json)
            return
        sides = [side_of_run(*run) if run else side_of(name) for name, run in zip((before, after), runs, strict=True)]
        changes = differences(*sides)
        cases = compare_runs(*stores) if len(stores) == 2 else None
    if as_json:
        of_cases = {} if cases is None else {"runs": _runs(stores), **_plain(cases)}
        print_json({**plain(changes), **of_cases})
    elif markdown:
        print("\n".join(markdown_lines(changes)))
    else:
        print("\n".join(text_lines(changes)))
        if cases is not None:
            print(_text(cases))
    if _fails(changes, cases, fail_on):
        raise typer.Exit(1)


def _opened(name: str, opened: ExitStack) -> tuple[Store, Run] | None:
    """The run of a results store, named FILE or FILE:N; None for evidence and releases."""
    from ..audit.store.store import Store
    from ..reports.evidence.comparing import is_evidence, is_release

    if is_evidence(name) or is_release(name):
        return None
    file, colon, number = name.rpartition(":")
    if not (colon and number.isdecimal()):
        file, number = name, ""
    store = opened.enter_context(Store.open(Path(file)))
    return store, store.run(int(number)) if number else store.latest_run()


def _fails(changes: Differences, cases: RunComparison | None, fail_on: FailOn) -> bool:
    from ..reports.evidence.comparing import Transition

    if fail_on is FailOn.DIFFERENCE:
        return bool(changes.verdicts or changes.failures or (cases and cases.differences))
    if fail_on is FailOn.NEVER:
        return False
    kinds = [became for became in Transition if became.is_worse] if fail_on is FailOn.WORSE else [Transition.NEW_WRONG]
    return changes.has(*kinds) or bool(changes.failures)


def _compare_shipped(runs: list[tuple[Store, Run]], as_json: bool) -> None:
    """Show the wrong results of shipped kernels that changed; exits with 1 if some are new."""
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


def _runs(stores: list[tuple[Store, Run]]) -> dict[str, Any]:
    return {
        side: {"store": str(store.path), "run": run.id, "torch": run.environment["torch"], "simulated": run.simulated}
        for side, (store, run) in zip(("before", "after"), stores, strict=True)
    }


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


def _text(comparison: RunComparison) -> str:
    lines = [
        f"{comparison.before:,} cases before, {comparison.after:,} after: {comparison.same:,} the same,"
        f" {len(comparison.differences):,} different"
    ]
    lines += [f"  {count:,} {kind}" for kind, count in comparison.by_kind.most_common()]
    listed = comparison.differences[:LISTED]
    lines += [f"{difference.label}: {difference.kind}" for difference in listed]
    if left := len(comparison.differences) - len(listed):
        lines.append(f"… {left:,} more (--json lists them)")
    return "\n".join(lines)
