"""`mpsmith try`: a project's checkout on the simulated device, as its own build and tests would run on a Mac."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from .options import AsJson
from .printing import print_json, say

if TYPE_CHECKING:
    from ..scaffold.checkout.results import TryRow

SIMULATED = "SIMULATED: nothing was run on a Mac."


def try_checkout(
    folder: Annotated[Path, typer.Argument(metavar="FOLDER", help="A project's checkout.", show_default=False)],
    limit: Annotated[float, typer.Option(min=1, max=86400, help="Seconds that one test may take.")] = 300,
    as_json: AsJson = False,
) -> None:
    """Check a project's Metal, build its extensions as its setup.py does on a Mac, and run its tests, simulated.

    Exits with 1 unless all of it passes. It runs the project's own code.
    """
    from ..scaffold.checkout.results import TryResult, passed
    from ..scaffold.checkout.trying import try_checkout as tried

    rows: list[TryRow] = []
    for row in tried(folder, limit, say):
        rows.append(row)
        if not as_json and row.result is not TryResult.RIGHT:
            print(_line(row), flush=True)
    accepted = passed(rows)
    counts = Counter(row.result.value for row in rows)
    if as_json:
        listed = [row.as_json() for row in rows]
        print_json({"simulated": True, "passed": accepted, "counts": dict(counts), "rows": listed})
    else:
        shown = ", ".join(f"{counts[result.value]} {result.value}" for result in TryResult if counts[result.value])
        print(f"{folder}: {'passed' if accepted else 'not passed'}: {shown}. {SIMULATED}")
    if not accepted:
        raise typer.Exit(1)


def _line(row: TryRow) -> str:
    file = "" if row.file == row.name else row.file
    place = f" ({file}:{row.line})" if row.line and file else f" (line {row.line})" if row.line else ""
    reason = f": {row.reason}" if row.reason else ""
    return f"{row.kind} {row.name}: {row.result.value}{place}{reason}"
