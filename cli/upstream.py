"""`mpsmith upstream`: patches of finished families against PyTorch, and PyTorch's own host code on this machine."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from .host_code import lacking, summed
from .options import AsJson, Operators, values_of
from .printing import print_json, say

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..scaffold.upstream_survey import FamilyRow
    from ..simulator.upstream.manifest import TreeBuild

app = typer.Typer(
    name="upstream", help="Code for PyTorch itself: patches of our families, and its own kernels.", no_args_is_help=True
)
_HEADERS = ("family", "rows", "patch", "applies", "builds for macOS", "runs", "cases alike")
# Outcomes of a step that need no explanation.
_FINE = ("yes", "", "not needed")
# The folder for the patches of a survey.
SURVEY_FOLDER = Path("work/upstream")
NOT_A_MAC = "simulated: host code and Metal ran on this machine, not on a Mac"


@app.command()
def survey(
    operators: Operators = None,
    as_json: AsJson = False,
) -> None:
    """Make, apply, build and run each finished family as a patch; exits with 1 if one fails."""
    from ..scaffold.operators.source import source_of
    from ..scaffold.targets.upstream.family import Family
    from ..scaffold.upstream_survey import finished_families
    from ..scaffold.upstream_survey import survey as rows_of

    wanted = values_of(operators, "--ops")
    families = sorted({Family.serving(name).name for name in wanted}) if wanted else finished_families()
    rows: list[FamilyRow] = []
    for row in rows_of(source_of(None), families, SURVEY_FOLDER):
        rows.append(row)
        typer.echo(f"{row.family}: {_outcome(row)}", err=True)
    if as_json:
        print_json({"note": NOT_A_MAC, "families": [vars(row) | {"proved": row.proved} for row in rows]})
    else:
        _print_survey(rows)
    if any(row.made == "yes" and not row.proved for row in rows):
        raise typer.Exit(1)


def _needs_no_patch(row: FamilyRow) -> bool:
    from ..scaffold.upstream_survey import UNNEEDED

    return row.made == UNNEEDED


def _outcome(row: FamilyRow) -> str:
    if _needs_no_patch(row):
        return row.made
    return next((f"{step}: {outcome}" for step, outcome in _steps(row).items() if outcome not in _FINE), "proved")


def _steps(row: FamilyRow) -> dict[str, str]:
    return {
        "patch": row.made,
        "applies": row.applies,
        "builds for macOS": row.builds,
        "runs": row.runs,
    }


def _print_survey(rows: Sequence[FamilyRow]) -> None:
    from tabulate import tabulate

    cells = [
        (row.family, len(row.overloads) or "", *map(_short, _steps(row).values()), row.cases or "") for row in rows
    ]
    typer.echo(tabulate(cells, headers=_HEADERS))
    typer.echo(f"{_total(rows)}. {NOT_A_MAC}")


def _total(rows: Sequence[FamilyRow]) -> str:
    unneeded = sum(_needs_no_patch(row) for row in rows)
    proved = f"{sum(row.proved for row in rows)} of {len(rows) - unneeded} families proved"
    word = "needs" if unneeded == 1 else "need"
    return f"{proved}, {unneeded} {word} no patch: the release has the kernels" if unneeded else proved


def _short(outcome: str) -> str:
    return outcome if outcome in _FINE else "no"


@app.command()
def build(
    source: Annotated[Path | None, typer.Option(metavar="FOLDER", help="A folder with PyTorch's source.")] = None,
    release: Annotated[
        str | None, typer.Option("--torch", metavar="RELEASE", help="A release of PyTorch, whose source is fetched.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Compile PyTorch's own mps host code for this machine; exits with 1 if a file does not compile."""
    from ..audit.running.host_code import build_host_code

    if (source is None) == (release is None):
        raise typer.BadParameter("give a folder with --source, or a release with --torch")
    asked = str(source or release)
    _, built = build_host_code(asked, say)
    if as_json:
        facts = {"changed_schemas": built.changed, "missing_selectors": built.selectors}
        print_json({"note": NOT_A_MAC, "files": [vars(file) for file in built.files], **facts})
    else:
        _print_build(built)
        typer.echo(f"next: mpsmith audit --host-code {asked} --ops OP")
    if built.failed:
        raise typer.Exit(1)


def _print_build(built: TreeBuild) -> None:
    from tabulate import tabulate

    rows = [(file.name, len(file.overloads), file.problem or "yes") for file in built.files]
    typer.echo(tabulate(rows, headers=("file", "overloads", "built")))
    for line in (*lacking(built), summed(built)):
        typer.echo(line)
