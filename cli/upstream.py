"""`mpsmith upstream`: build PyTorch's own mps host code on this machine."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from .host_code import lacking, summed
from .options import AsJson
from .printing import print_json, say

if TYPE_CHECKING:
    from ..simulator.upstream.manifest import TreeBuild

app = typer.Typer(name="upstream", help="PyTorch's own mps host code on this machine.", no_args_is_help=True)
NOT_A_MAC = "simulated: host code and Metal ran on this machine, not on a Mac"


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
