"""`mpsmith upstream`: patches of finished families against PyTorch, and PyTorch's own host code on this machine."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from .options import AsJson, Operators, values_of
from .printing import print_json

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..scaffold.upstream_survey import FamilyRow
    from ..simulator.upstream.whole_tree import TreeBuild

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
    source: Annotated[Path | None, typer.Option(metavar="CHECKOUT", help="A checkout of PyTorch.")] = None,
    release: Annotated[
        str | None, typer.Option("--torch", metavar="RELEASE", help="A release of PyTorch, whose source is fetched.")
    ] = None,
    operators: Operators = None,
    out: Annotated[Path, typer.Option(metavar="DIR", help="The folder for the manifest.")] = Path(
        "work/upstream-build"
    ),
    as_json: AsJson = False,
) -> None:
    """Compile PyTorch's own mps host code for this machine; `mpsmith audit --upstream DIR` runs it."""
    from ..simulator.upstream.building import write_manifest
    from ..simulator.upstream.operations import NATIVE_FUNCTIONS, TAGS, operation_files, serving
    from ..simulator.upstream.registrations import MpsYaml
    from ..simulator.upstream.sources import source_of_release
    from ..simulator.upstream.whole_tree import build_tree

    if (source is None) == (release is None):
        raise typer.BadParameter("give a checkout with --source, or a release with --torch")
    root = source if source is not None else source_of_release(str(release))
    files = operation_files(root)
    patterns = values_of(operators, "--ops")
    if patterns:
        yaml = MpsYaml((root / NATIVE_FUNCTIONS).read_text("utf-8"), root / TAGS)
        names = serving(files, yaml.kernels, patterns)
        files = [file for file in files if file.name in names]
    built = build_tree(root, files, lambda line: typer.echo(line, err=True))
    path = write_manifest(out, root, built.files)
    if as_json:
        facts = {"changed_schemas": built.changed, "missing_selectors": built.selectors}
        print_json({"note": NOT_A_MAC, "files": [vars(file) for file in built.files], **facts})
    else:
        _print_build(built)
        typer.echo(f"next: mpsmith audit --upstream {path.parent} --ops OP")
    if any(file.problem for file in built.files):
        raise typer.Exit(1)


def _print_build(built: TreeBuild) -> None:
    from tabulate import tabulate

    rows = [(file.name, len(file.overloads), file.problem or "yes") for file in built.files]
    typer.echo(tabulate(rows, headers=("file", "overloads", "built")))
    for overload, installed in sorted(built.changed.items()):
        typer.echo(f"not registered: {overload}, whose schema is now {installed or 'gone'}")
    for selector, files in built.selectors.items():
        typer.echo(f"raises when it is sent: {selector} ({', '.join(files)})")
    working = [file for file in built.files if file.built]
    overloads = sum(len(file.overloads) for file in working)
    typer.echo(f"{len(working)} of {len(built.files)} files built, {overloads} overloads")
    typer.echo("MPSGraph: stand-in, which computes graphs with torch's CPU operators")
