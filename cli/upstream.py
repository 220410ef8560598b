"""`mpsmith upstream`: patches of finished families against PyTorch, and PyTorch's own host code on this machine."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from .options import AsJson, Operators, Release, values_of
from .printing import print_json

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ..scaffold.family_survey import FamilyRow
    from ..simulator.upstream.building import BuiltFile

app = typer.Typer(
    name="upstream", help="Code for PyTorch itself: patches of our families, and its own kernels.", no_args_is_help=True
)
NOT_A_MAC = "simulated: host code and Metal ran on this machine, not on a Mac"


@app.command()
def survey(
    operators: Operators = None,
    out: Annotated[Path, typer.Option(metavar="DIR", help="Where the patches go.")] = Path("work/upstream"),
    running: Annotated[
        bool, typer.Option("--run/--no-run", help="Also run each patch on the simulated device.")
    ] = True,
    torch: Release = None,
    as_json: AsJson = False,
) -> None:
    """For each finished family: a patch against PyTorch made, applied, built for macOS, run; exits with 1 for a no."""
    from ..scaffold.family_survey import finished_families
    from ..scaffold.family_survey import survey as rows_of
    from ..scaffold.operators.source import source_of
    from ..scaffold.targets.upstream.family import family_of

    wanted = values_of(operators, "--ops")
    families = sorted({family_of(name) for name in wanted}) if wanted else finished_families()
    rows: list[FamilyRow] = []
    for row in rows_of(source_of(torch), families, out, running=running):
        rows.append(row)
        typer.echo(f"{row.family}: {_in_a_word(row)}", err=True)
    if as_json:
        print_json({"note": NOT_A_MAC, "families": [vars(row) | {"proved": row.proved} for row in rows]})
    else:
        _print_survey(rows)
    if any(row.made == "yes" and not row.proved for row in rows):
        raise typer.Exit(1)


def _in_a_word(row: FamilyRow) -> str:
    steps = {"made": row.made, "applies": row.applies, "builds": row.builds, "runs": row.runs}
    return next((f"{step}: {said}" for step, said in steps.items() if said not in ("yes", "")), "proved")


def _print_survey(rows: Iterable[FamilyRow]) -> None:
    from tabulate import tabulate

    listed = list(rows)
    cells = [
        (
            row.family,
            len(row.overloads) or "",
            *map(_short, (row.made, row.applies, row.builds, row.runs)),
            row.cases or "",
        )
        for row in listed
    ]
    headers = ("family", "rows", "patch", "applies", "builds for macOS", "runs", "cases alike")
    typer.echo(tabulate(cells, headers=headers))
    typer.echo(f"{sum(row.proved for row in listed)} of {len(listed)} families proved. {NOT_A_MAC}")


def _short(said: str) -> str:
    return said if said in ("yes", "") else "no"


@app.command()
def build(
    source: Annotated[Path, typer.Option(metavar="CHECKOUT", help="A checkout of PyTorch.")],
    operators: Operators = None,
    out: Annotated[Path, typer.Option(metavar="DIR", help="Where to note what was built.")] = Path(
        "work/upstream-build"
    ),
    as_json: AsJson = False,
) -> None:
    """Compile a checkout's mps kernels for this machine; `mpsmith audit --upstream DIR` runs them."""
    from ..simulator.upstream.building import build_files, write_manifest
    from ..simulator.upstream.operations import NATIVE_FUNCTIONS, TAGS, operation_files, serving
    from ..simulator.upstream.registrations import MpsYaml

    files = operation_files(source)
    yaml = MpsYaml((source / NATIVE_FUNCTIONS).read_text("utf-8"), source / TAGS)
    wanted = values_of(operators, "--ops")
    if wanted:
        names = serving(files, yaml.kernels, wanted)
        files = [file for file in files if file.name in names]
    built: list[BuiltFile] = []
    for one in build_files(files, yaml):
        built.append(one)
        typer.echo(f"{one.name}: {'built' if one.built else one.problem}", err=True)
    path = write_manifest(out, source, built)
    if as_json:
        print_json({"note": NOT_A_MAC, "files": [vars(one) for one in built]})
    else:
        _print_build(built)
        typer.echo(f"next: mpsmith audit --upstream {path.parent} --ops OP")
    if any(not one.built and not one.closed for one in built):
        raise typer.Exit(1)


def _print_build(built: Iterable[BuiltFile]) -> None:
    from tabulate import tabulate

    listed = list(built)
    rows = [(one.name, len(one.overloads), "yes" if one.built else one.problem) for one in listed]
    typer.echo(tabulate(rows, headers=("file", "overloads", "built")))
    closed = sum(one.closed for one in listed)
    done = [one for one in listed if one.built]
    registered = sum(len(one.overloads) for one in done)
    closed_too = f"{closed} need what is Apple's and closed"
    typer.echo(f"{len(done)} of {len(listed) - closed} files built, {registered} overloads; {closed_too}")
