"""`mpsmith scaffold`: everything to start a kernel with, for one operator or for every gap."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from ..scaffold.generation.generate import Scaffold
    from ..scaffold.operators.model import Source


def scaffold(
    operator: Annotated[
        str | None, typer.Argument(metavar="[OP]", help="The operator, such as aten::mode or mode.")
    ] = None,
    target: Annotated[
        str,
        typer.Option(help="shader (Python and Metal), extension, stable (one binary for releases), upstream (patch)."),
    ] = "shader",
    kind: Annotated[
        str | None, typer.Option(help="The kind of kernel, where the one that is found does not fit.")
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Where to; by default a new folder, or a clone's kernels/."),
    ] = None,
    all_missing: Annotated[bool, typer.Option("--all-missing", help="Every gap, each in a folder of its own.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say what would be written, and write nothing.")] = False,
    force: Annotated[
        bool, typer.Option("--force", help="Also where there is no gap, and over files that were edited.")
    ] = False,
    torch: Annotated[
        str | None, typer.Option("--torch", metavar="RELEASE", help="The release of torch; default: as installed.")
    ] = None,
    registry: Annotated[
        Path | None,
        typer.Option("--registry", metavar="DIR", envvar="MPSMITH_REGISTRY", help="The registry's folder."),
    ] = None,
) -> None:
    """Generate a kernel's files and tests; what you wrote between the marks stays when you run it again."""
    from ..registry.problems import near
    from ..scaffold.errors import ScaffoldError
    from ..scaffold.generation.generate import chosen_kind, prepare, source_of
    from ..scaffold.targets import Target

    targets = [one.value for one in Target]
    if target not in targets:
        raise ScaffoldError(f"'{target}' is no target; there are {', '.join(targets)}{near(target, targets)}")
    wanted = Target(target)
    chosen = chosen_kind(kind)
    if (operator is None) != all_missing:
        raise ScaffoldError("give one operator, or --all-missing with --out DIR for every gap")
    source = source_of(torch)
    if operator is None:
        if out is None:
            raise ScaffoldError("--all-missing needs --out DIR")
        _scaffold_all(source, wanted.value, out, kind, dry_run, force, registry)
        return
    one = prepare(source, operator, wanted, out=out, kind=chosen, force=force, registry=registry)
    _tell(one)
    _finish([one], dry_run, force, registry)
    if not dry_run:
        typer.echo(f"next: {one.next_command}")


def _scaffold_all(
    source: Source, target: str, out: Path, kind: str | None, dry_run: bool, force: bool, registry: Path | None
) -> None:
    from ..scaffold.errors import ScaffoldError
    from ..scaffold.generation.generate import chosen_kind, prepare_all
    from ..scaffold.targets import Target

    scaffolds: list[Scaffold] = []
    problems: list[str] = []
    for found in prepare_all(source, Target(target), out, kind=chosen_kind(kind), force=force):
        if isinstance(found, ScaffoldError):
            problems.append(str(found))
        else:
            scaffolds.append(found)
    for problem in problems:
        typer.echo(f"not scaffolded: {problem}")
    _finish(scaffolds, dry_run, force, registry)
    files = sum(len(one.plan.changes) for one in scaffolds)
    typer.echo(
        f"torch {source.release}: {len(scaffolds)} operators, {files} files below {out}; {len(problems)} left out"
    )
    if not dry_run and target != "shader":
        typer.echo(f"next: mpsmith check {out}")


def _tell(one: Scaffold) -> None:
    if one.asked.name != one.operator.name:
        typer.echo(f"{one.asked.full_name} shares the kernel of {one.operator.full_name}, which is scaffolded instead")
    served = ", ".join(overload.name for overload in one.operator.kernels)
    typer.echo(f"{one.operator.full_name}: {one.choice.kind.words} (by {one.choice.because}); kernels for {served}")
    if one.operator.delegates:
        names = ", ".join(overload.name for overload in one.operator.delegates)
        typer.echo(f"  {names} call{'s' if len(one.operator.delegates) == 1 else ''} it by themselves")
    typer.echo(f"in {one.plan.folder}:")
    for change in one.plan.changes:
        typer.echo(f"  {change.action.value}: {change.path}")


def _finish(scaffolds: list[Scaffold], dry_run: bool, force: bool, registry: Path | None) -> None:
    from ..registry.folder import registry_folder
    from ..registry.problems import shown
    from ..scaffold.generation.generate import apply

    for one in scaffolds:
        for change in one.plan.conflicts:
            typer.echo(change.diff)
    if dry_run:
        typer.echo("nothing was written (--dry-run)")
        return
    moved = apply(scaffolds, force=force, registry=registry)
    if moved:
        typer.echo(f"registry in {shown(registry_folder(registry))}: {', '.join(moved)}: scaffolded")
