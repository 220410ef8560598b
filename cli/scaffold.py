"""`mpsmith scaffold`: everything to start a kernel with, for one operator or for every gap."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from .options import AsJson, Release
from .printing import print_json

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ..scaffold.generation.from_kernel import FamilyScaffold
    from ..scaffold.generation.generate import Scaffold
    from ..scaffold.operators.kinds import KernelKind
    from ..scaffold.operators.source import Source
    from ..scaffold.targets import KernelTarget
    from ..scaffold.targets.upstream.evidence import FamilyEvidence


def scaffold(
    operator: Annotated[
        str | None, typer.Argument(metavar="[OP]", help="The operator, such as aten::mode or mode.")
    ] = None,
    target: Annotated[
        str,
        typer.Option(help="shader (Python and Metal), extension or upstream (a patch)."),
    ] = "shader",
    kind: Annotated[
        str | None, typer.Option(help="The kind of kernel, where the one that is found does not fit.")
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Where to; by default a new folder, or a clone's kernels/."),
    ] = None,
    from_kernel: Annotated[
        bool,
        typer.Option("--from-kernel", help="The finished family of OP as a patch, with --target upstream."),
    ] = False,
    all_missing: Annotated[bool, typer.Option("--all-missing", help="Every gap, each in a folder of its own.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say what would be written, and write nothing.")] = False,
    force: Annotated[
        bool, typer.Option("--force", help="Also where there is no gap, and over files that were edited.")
    ] = False,
    torch: Release = None,
    as_json: AsJson = False,
) -> None:
    """Generate a kernel's files and tests; what you wrote between the marks stays when you run it again."""
    from ..errors import near
    from ..registry.folder import registry_folder
    from ..registry.problems import shown
    from ..scaffold.errors import ScaffoldError
    from ..scaffold.generation.generate import apply, prepare
    from ..scaffold.operators.kinds import chosen_kind
    from ..scaffold.operators.source import source_of
    from ..scaffold.targets import KernelTarget

    targets = [one.value for one in KernelTarget]
    if target not in targets:
        raise ScaffoldError(f"'{target}' is no target; there are {', '.join(targets)}{near(target, targets)}")
    wanted = KernelTarget(target)
    chosen = chosen_kind(kind)
    if (operator is None) != all_missing:
        raise ScaffoldError("give one operator, or --all-missing with --out DIR for every gap")
    source = source_of(torch)
    if from_kernel:
        if operator is None or wanted is not KernelTarget.UPSTREAM:
            raise ScaffoldError("--from-kernel takes one operator and --target upstream")
        _finished_family(_from_kernel(source, operator, out, force), force, dry_run, as_json)
        return
    if operator is None:
        if out is None:
            raise ScaffoldError("--all-missing needs --out DIR")
        scaffolds, left_out = _every_gap(source, wanted, out, chosen, force)
    else:
        one = prepare(source, operator, wanted, out=out, kind=chosen, force=force)
        scaffolds, left_out = [one], []
    if not as_json:
        for line in _planned(scaffolds, left_out, in_full=operator is not None):
            print(line)
    moved = [] if dry_run else apply(scaffolds, force=force)
    if as_json:
        listed = [_as_json(scaffolded) for scaffolded in scaffolds]
        written = not dry_run
        print_json({"torch": source.release, "written": written, "scaffolds": listed, "left_out": left_out})
        return
    if dry_run:
        print("nothing was written (--dry-run)")
    if moved:
        print(f"registry in {shown(registry_folder())}: {', '.join(moved)}: scaffolded")
    if operator is None:
        files = sum(len(scaffolded.plan.changes) for scaffolded in scaffolds)
        counts = f"{len(scaffolds)} operators, {files} files below {out}; {len(left_out)} left out"
        print(f"torch {source.release}: {counts}")
    next_command = scaffolds[0].next_command if operator is not None else f"mpsmith check {out}"
    if not dry_run and (operator is not None or wanted is not KernelTarget.SHADER):
        print(f"next: {next_command}")


def _from_kernel(source: Source, operator: str, out: Path | None, force: bool) -> FamilyScaffold:
    """The patch of the family that serves an operator, with its measurements in the description."""
    from ..scaffold.generation.from_kernel import prepare_patch
    from ..scaffold.targets.upstream.family import family_of

    return prepare_patch(source, family_of(operator), _measured_here, out=out, force=force)


def _finished_family(made: FamilyScaffold, force: bool, dry_run: bool, as_json: bool) -> None:
    """Write a family's files, and say what they serve."""
    from ..scaffold.generation.writing import write

    if not dry_run:
        write(made.plan, force=force)
    rows, release = made.patch.rows, made.plan.manifest.torch
    if as_json:
        files = [{"file": str(change.path), "action": change.action.value} for change in made.plan.changes]
        print_json(
            {
                "torch": release,
                "family": made.patch.family,
                "written": not dry_run,
                "rows": dict(rows.kernels),
                "native": list(rows.native),
                "files": files,
                "next": made.next_command,
            }
        )
        return
    print(f"{made.patch.family}: kernels for {', '.join(rows.kernels)}")
    if rows.native:
        print(f"  torch {release} has kernels of its own for {', '.join(rows.native)}")
    print(f"in {made.plan.folder}:")
    for change in made.plan.changes:
        print(f"  {change.action.value}: {change.path}")
    print("nothing was written (--dry-run)" if dry_run else f"next: {made.next_command}")


def _measured_here(family: str, opinfos: tuple[str, ...]) -> FamilyEvidence:
    """What the family's kernels show on this machine: on a Mac, else on the simulated device."""
    from ..scaffold.targets.upstream.evidence import measured
    from .kernels import open_with_kernels

    return measured(family, opinfos, simulated=open_with_kernels())


def _every_gap(
    source: Source, target: KernelTarget, out: Path, kind: KernelKind | None, force: bool
) -> tuple[list[Scaffold], list[str]]:
    """The scaffolds of every gap, and why some gaps have none."""
    from ..scaffold.errors import ScaffoldError
    from ..scaffold.generation.generate import prepare_all

    scaffolds: list[Scaffold] = []
    left_out: list[str] = []
    for prepared in prepare_all(source, target, out, kind=kind, force=force):
        if isinstance(prepared, ScaffoldError):
            left_out.append(str(prepared))
        else:
            scaffolds.append(prepared)
    return scaffolds, left_out


def _planned(scaffolds: list[Scaffold], left_out: list[str], *, in_full: bool) -> Iterator[str]:
    """What is going to be written, and where somebody's edits stand in the way."""
    yield from (f"not scaffolded: {reason}" for reason in left_out)
    for scaffolded in scaffolds:
        if in_full:
            yield from _described(scaffolded)
        yield from (change.diff for change in scaffolded.plan.conflicts)


def _described(scaffolded: Scaffold) -> Iterator[str]:
    asked, operator, choice = scaffolded.asked, scaffolded.operator, scaffolded.choice
    if asked.name != operator.name:
        yield f"{asked.full_name} shares the kernel of {operator.full_name}, which is scaffolded instead"
    served = ", ".join(overload.name for overload in operator.kernels)
    yield f"{operator.full_name}: {choice.kind.words} (by {choice.because}); kernels for {served}"
    if operator.delegates:
        names = ", ".join(overload.name for overload in operator.delegates)
        yield f"  {names} call{'s' if len(operator.delegates) == 1 else ''} it by themselves"
    yield f"in {scaffolded.plan.folder}:"
    for change in scaffolded.plan.changes:
        yield f"  {change.action.value}: {change.path}"


def _as_json(scaffolded: Scaffold) -> dict[str, object]:
    return {
        "operator": scaffolded.operator.full_name,
        "asked": scaffolded.asked.full_name,
        "target": scaffolded.target.value,
        "kind": scaffolded.choice.kind.value,
        "because": scaffolded.choice.because,
        "overloads": [overload.name for overload in scaffolded.operator.kernels],
        "folder": str(scaffolded.plan.folder),
        "files": [{"file": str(change.path), "action": change.action.value} for change in scaffolded.plan.changes],
        "next": scaffolded.next_command,
    }
