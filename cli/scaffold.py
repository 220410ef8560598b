"""`mpsmith scaffold`: the files to start a kernel with."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from .options import AsJson, Release, require_writable
from .printing import print_json

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ..scaffold.generation.from_kernel import FamilyScaffold
    from ..scaffold.generation.generate import Scaffold
    from ..scaffold.operators.source import Source
    from ..scaffold.targets import KernelTarget
    from ..scaffold.targets.upstream.evidence import FamilyEvidence
    from ..scaffold.targets.upstream.family import Family


def scaffold(
    operator: Annotated[str, typer.Argument(metavar="OP", help="The operator: aten::mode, linalg.eig, x.mode().")],
    target: Annotated[str, typer.Option(help="shader (Python and Metal), extension or upstream (a patch).")] = "shader",
    kind: Annotated[
        str | None, typer.Option(help="The kind of kernel, if the one that is chosen does not fit.")
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="The folder to write; default: a new folder, or a clone's kernels/."),
    ] = None,
    from_kernel: Annotated[
        bool, typer.Option("--from-kernel", help="The finished family of OP as a patch, with --target upstream.")
    ] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print what would be written, and write nothing.")] = False,
    force: Annotated[
        bool, typer.Option("--force", help="Also for operators that mps has, and over edited files.")
    ] = False,
    torch: Release = None,
    as_json: AsJson = False,
) -> None:
    """Generate a kernel's files and tests; what you wrote between the marks stays when you run it again."""
    from ..registry.folder import registry_folder
    from ..registry.problems import shown
    from ..scaffold.errors import ScaffoldError
    from ..scaffold.generation.generate import apply, prepare
    from ..scaffold.operators.kinds import chosen_kind
    from ..scaffold.operators.source import source_of
    from ..scaffold.targets import KernelTarget

    chosen_target = _target(target)
    if out is not None and not dry_run:
        require_writable("--out", out / ".mpsmith.json")
    source = source_of(torch)
    if from_kernel:
        if chosen_target is not KernelTarget.UPSTREAM:
            raise ScaffoldError("--from-kernel needs --target upstream")
        family = _from_kernel(source, operator, out, force)
        _write_family(family, force, dry_run, as_json)
        return
    requested = source.operator(operator)
    prepared = prepare(
        requested, source.serving(requested), chosen_target, out=out, kind=chosen_kind(kind), force=force
    )
    if not as_json:
        print("\n".join(_described(prepared)))
    changed_entries = [] if dry_run else apply([prepared], force=force)
    if as_json:
        print_json({"torch": source.release, "written": not dry_run, "scaffolds": [_as_json(prepared)]})
        return
    if changed_entries:
        print(f"registry in {shown(registry_folder())}: {', '.join(changed_entries)}: scaffolded")
    print("nothing was written (--dry-run)" if dry_run else f"next: {prepared.next_command}")


def _target(name: str) -> KernelTarget:
    """The target of this name. Raises ScaffoldError for an unknown one."""
    from ..errors import near
    from ..scaffold.errors import ScaffoldError
    from ..scaffold.targets import KernelTarget

    names = [target.value for target in KernelTarget]
    if name not in names:
        raise ScaffoldError(f"'{name}' is not a target; there are {', '.join(names)}{near(name, names)}")
    return KernelTarget(name)


def _from_kernel(source: Source, operator: str, out: Path | None, force: bool) -> FamilyScaffold:
    """The patch of the family that implements an operator, with its measurements in the description."""
    from ..scaffold.generation.from_kernel import prepare_patch
    from ..scaffold.targets.upstream.family import Family

    return prepare_patch(source, Family.serving(operator), _measured_here, out=out, force=force)


def _write_family(made: FamilyScaffold, force: bool, dry_run: bool, as_json: bool) -> None:
    """Write a family's files, and print the operators that they implement."""
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
        print(f"  torch {release} has its own kernels for {', '.join(rows.native)}")
    print(f"in {made.plan.folder}:")
    for change in made.plan.changes:
        print(f"  {change.action.value}: {change.path}")
    print("nothing was written (--dry-run)" if dry_run else f"next: {made.next_command}")


def _measured_here(family: Family) -> FamilyEvidence:
    """The measurements of the family's kernels on this machine: on a Mac, else on the simulated device."""
    from ..scaffold.targets.upstream.evidence import measured
    from .kernels import open_with_kernels

    overloads = [kernel.overload for kernel in family.kernels]
    return measured(family.name, overloads, family.opinfos, simulated=open_with_kernels())


def _described(scaffolded: Scaffold) -> Iterator[str]:
    """The files that will be written, and the diffs of files that someone edited."""
    requested, operator, choice = scaffolded.requested, scaffolded.operator, scaffolded.choice
    if requested.name != operator.name:
        yield f"{requested.full_name} shares the kernel of {operator.full_name}, which is scaffolded instead"
    served = ", ".join(overload.name for overload in operator.kernels)
    yield f"{operator.full_name}: {choice.kind.words} (by {choice.because}); kernels for {served}"
    if operator.delegates:
        names = ", ".join(overload.name for overload in operator.delegates)
        yield f"  {names} need{'s' if len(operator.delegates) == 1 else ''} no kernel: PyTorch calls {served} for it"
    yield f"in {scaffolded.plan.folder}:"
    for change in scaffolded.plan.changes:
        yield f"  {change.action.value}: {change.path}"
    yield from (change.diff for change in scaffolded.plan.conflicts)


def _as_json(scaffolded: Scaffold) -> dict[str, object]:
    return {
        "operator": scaffolded.operator.full_name,
        "asked": scaffolded.requested.full_name,
        "target": scaffolded.target.value,
        "kind": scaffolded.choice.kind.value,
        "because": scaffolded.choice.because,
        "overloads": [overload.name for overload in scaffolded.operator.kernels],
        "folder": str(scaffolded.plan.folder),
        "files": [{"file": str(change.path), "action": change.action.value} for change in scaffolded.plan.changes],
        "next": scaffolded.next_command,
    }
