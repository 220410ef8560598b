"""`mpsmith upstream`: patches of finished families against PyTorch, and PyTorch's own host code on this machine."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from .options import AsJson, Operators, Release, values_of
from .printing import print_json

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from ..scaffold.upstream_survey import FamilyRow
    from ..simulator.upstream.building import BuiltFile

app = typer.Typer(
    name="upstream", help="Code for PyTorch itself: patches of our families, and its own kernels.", no_args_is_help=True
)
_COMMAND = "mpsmith upstream survey --markdown"
_HEADERS = ("family", "rows", "patch", "applies", "builds for macOS", "runs", "cases alike")
# What needs no further word in a table.
_FINE = ("yes", "", "not needed")
NOT_A_MAC = "simulated: host code and Metal ran on this machine, not on a Mac"


@app.command()
def survey(
    operators: Operators = None,
    out: Annotated[Path, typer.Option(metavar="DIR", help="Where patches go.")] = Path("work/upstream"),
    running: Annotated[bool, typer.Option("--run/--no-run", help="Also run each on the simulated device.")] = True,
    torch: Release = None,
    as_json: AsJson = False,
    as_markdown: Annotated[bool, typer.Option("--markdown", help="A page in Markdown.")] = False,
) -> None:
    """Each finished family as a patch: applied, built for macOS and run; exits with 1 if any fails."""
    from ..scaffold.operators.source import source_of
    from ..scaffold.targets.upstream.family import family_of
    from ..scaffold.upstream_survey import finished_families
    from ..scaffold.upstream_survey import survey as rows_of

    wanted = values_of(operators, "--ops")
    families = sorted({family_of(name) for name in wanted}) if wanted else finished_families()
    rows: list[FamilyRow] = []
    for row in rows_of(source_of(torch), families, out, running=running):
        rows.append(row)
        typer.echo(f"{row.family}: {_in_a_word(row)}", err=True)
    if as_json:
        print_json({"note": NOT_A_MAC, "families": [vars(row) | {"proved": row.proved} for row in rows]})
    elif as_markdown:
        _print_page(rows)
    else:
        _print_survey(rows)
    if any(row.made == "yes" and not row.proved for row in rows):
        raise typer.Exit(1)


def _needs_none(row: FamilyRow) -> bool:
    from ..scaffold.upstream_survey import UNNEEDED

    return row.made == UNNEEDED


def _in_a_word(row: FamilyRow) -> str:
    if _needs_none(row):
        return row.made
    return next((f"{step}: {said}" for step, said in _steps(row).items() if said not in _FINE), "proved")


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


def _print_page(rows: Sequence[FamilyRow]) -> None:
    """The table, and what each family says that was not proved."""
    from tabulate import tabulate

    cells = [
        (f"`{row.family}`", len(row.overloads) or "", *map(_short, _steps(row).values()), row.cases or "")
        for row in rows
    ]
    typer.echo(
        f"# Finished families as patches and extensions\n\nWritten by `{_COMMAND}`. {_total(rows)}; {NOT_A_MAC}.\n"
    )
    typer.echo(tabulate(cells, headers=_HEADERS, tablefmt="pipe"))
    unproved = [row for row in rows if not (row.proved or _needs_none(row))]
    if unproved:
        typer.echo("\nNot proved:\n")
    for row in unproved:
        typer.echo(f"- `{row.family}`: {_in_a_word(row)}")


def _total(rows: Sequence[FamilyRow]) -> str:
    unneeded = sum(_needs_none(row) for row in rows)
    proved = f"{sum(row.proved for row in rows)} of {len(rows) - unneeded} families proved"
    word = "needs" if unneeded == 1 else "need"
    return f"{proved}, {unneeded} {word} no patch: the release has the kernels" if unneeded else proved


def _short(said: str) -> str:
    return said if said in _FINE else "no"


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
