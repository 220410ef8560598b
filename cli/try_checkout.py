"""`mpsmith try`: a project's checkout on the simulated device, as its own build and tests would run on a Mac."""

from __future__ import annotations

from collections import Counter
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated
from urllib.parse import quote

import typer

from .options import AsJson
from .printing import print_json, say

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from ..scaffold.checkout.results import TryRow

SIMULATED = "SIMULATED: nothing was run on a Mac."


class TryFormat(str, Enum):
    """The output formats."""

    TERMINAL = "terminal"
    JSON = "json"
    JUNIT = "junit"
    SARIF = "sarif"


def try_checkout(
    folder: Annotated[Path, typer.Argument(metavar="FOLDER", help="A project's checkout.", show_default=False)],
    tests: Annotated[
        str, typer.Argument(metavar="TESTS", help="Only tests that match, as pytest's -k.", show_default=False)
    ] = "",
    limit: Annotated[
        float, typer.Option(min=1, max=86400, help="Seconds of one test, without waits for a processor.")
    ] = 300,
    host_code: Annotated[
        str | None,
        typer.Option(
            metavar="RELEASE|FOLDER",
            help="Compute with PyTorch's own mps host code, of a release or of a folder with its source.",
        ),
    ] = None,
    form: Annotated[TryFormat, typer.Option("--format", help="The form of the result.")] = TryFormat.TERMINAL,
    as_json: AsJson = False,
) -> None:
    """Check a project's Metal, build its extensions as its setup.py does on a Mac, and run its tests, simulated.

    Exits with 1 unless everything passes; after Ctrl-C with 130, with the results so far. Executes the project's code.
    """
    from ..audit.running.host_code import prepare_host_code
    from ..scaffold.checkout.results import TryPlan, TryResult, passed
    from ..scaffold.checkout.trying import try_checkout as tried
    from ..simulator.opening import require_simulation

    require_simulation("try")
    form = TryFormat.JSON if as_json else form
    built = None if host_code is None else prepare_host_code(host_code, say)[0]
    rows: list[TryRow] = []
    plan = TryPlan()
    stopped = False
    try:
        for row in tried(folder, limit, say, plan, tests, built):
            rows.append(row)
            if form is TryFormat.TERMINAL and row.result is not TryResult.RIGHT:
                print(_line(row), flush=True)
    except KeyboardInterrupt:
        stopped = True
        left = plan.left(rows)
        rows += left
        if form is TryFormat.TERMINAL:
            print(_not_run(left), end="")
    accepted = passed(rows)
    counts = Counter(row.result.value for row in rows)
    if form is TryFormat.JSON:
        listed = [row.as_json() for row in rows]
        print_json({"simulated": True, "passed": accepted, "counts": dict(counts), "rows": listed})
    elif form is TryFormat.TERMINAL:
        shown = ", ".join(f"{counts[result.value]} {result.value}" for result in TryResult if counts[result.value])
        print(f"{folder}: {'passed' if accepted else 'not passed'}: {shown or 'nothing ran'}. {SIMULATED}")
    else:
        print(_as_junit(rows) if form is TryFormat.JUNIT else _as_sarif(rows), end="")
    if stopped or not accepted:
        raise typer.Exit(130 if stopped else 1)


def _not_run(rows: Iterable[TryRow]) -> str:
    """A line for each file whose tests did not all run, with the number of those left."""
    tests = Counter((row.kind, *row.name.partition("::")[:2]) for row in rows)
    return "".join(
        f"{kind} {file}: not run{f' to its end, {count} left' if parts else ''}\n"
        for (kind, file, parts), count in tests.items()
    )


def _as_junit(rows: Sequence[TryRow]) -> str:
    from ..reports import junit_report
    from ..scaffold.checkout.results import FAILURES, TryResult

    tests = []
    for row in rows:
        failure = row.result.value if row.result in FAILURES else ""
        not_run = row.result in (TryResult.SKIPPED, TryResult.NOT_RUN)
        skipped = (row.reason or "skipped") if not_run else ""
        tests.append(
            junit_report.case_element(
                row.kind, row.name, failure=failure, skipped=skipped, reason=row.reason + _place(row)
            )
        )
    return junit_report.document("mpsmith try", tests, SIMULATED)


def _as_sarif(rows: Sequence[TryRow]) -> str:
    from ..reports import sarif_report
    from ..scaffold.checkout.results import FAILURES

    results = [
        {
            "ruleId": row.result.value,
            "level": "error",
            "message": {"text": f"{row.kind} {row.name}: {row.reason or row.result.value}"},
            "locations": [_location(row)],
        }
        for row in rows
        if row.result in FAILURES
    ]
    return sarif_report.document(MEANINGS, results, SIMULATED)


MEANINGS = {
    "wrong": "the test failed, took too long, or ended the process",
    "defect of the project": "it does not compile, or is invalid on a Mac",
    "refused by mpsmith": "what mpsmith does not support",
}


def _location(row: TryRow) -> dict[str, object]:
    """A file of the checkout and the line; if there is no such file, only the test's name."""
    if not row.file or Path(row.file).is_absolute():
        return {"logicalLocations": [{"fullyQualifiedName": row.name}]}
    region = {"region": {"startLine": row.line}} if row.line else {}
    return {"physicalLocation": {"artifactLocation": {"uri": quote(row.file)}, **region}}


def _line(row: TryRow) -> str:
    reason = f": {row.reason}" if row.reason else ""
    return f"{row.kind} {row.name}: {row.result.value}{_place(row)}{reason}"


def _place(row: TryRow) -> str:
    file = "" if row.file == row.name else row.file
    return f" ({file}:{row.line})" if row.line and file else f" (line {row.line})" if row.line else ""
