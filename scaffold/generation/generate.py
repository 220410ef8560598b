"""`mpsmith scaffold`: from an operator's name to a plan of files, and from there into folder and registry."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ...registry.files import edit_all, load
from ...registry.model import Status
from ..manifest import Manifest
from ..operators.gap import require_gap, require_no_kernel
from ..operators.kinds import Choice, KernelKind, kind_of
from ..operators.model import OperatorModel
from ..operators.opinfos import opinfos_for, supported_dtypes
from ..release_files import files_of
from ..targets import Generated, KernelTarget, Request, extension, shader
from ..targets.upstream import patch as upstream
from .destination import Destination, destination_of
from .writing import Plan, plan, require_no_conflicts, write

_FURTHER = (Status.scaffolded, Status.implemented, Status.verified, Status.upstreamed)


@dataclass(frozen=True)
class Scaffold:
    """One scaffold, ready to be written.

    Attributes:
        operator: the operator that gets a kernel: the requested one, or the one whose kernel it shares.
        requested: the operator that the user named.
        choice: the kind of kernel and how it was chosen.
        target: the target.
        destination: the folder.
        plan: the files to write.
    """

    operator: OperatorModel
    requested: OperatorModel
    choice: Choice
    target: KernelTarget
    destination: Destination
    plan: Plan

    @property
    def next_command(self) -> str:
        """The command to run next."""
        if self.destination.in_package:
            return f"python -m pytest tests/simulated/test_kernel_{self.operator.stem}.py"
        if self.target is KernelTarget.SHADER:
            return f"python -m pytest {self.destination.folder / 'tests'}"
        run = "" if self.target is KernelTarget.UPSTREAM else " --run"
        return f"mpsmith check {self.destination.folder}{run}"


def prepare(
    requested: OperatorModel,
    operator: OperatorModel,
    target: KernelTarget,
    *,
    out: Path | None = None,
    kind: KernelKind | None = None,
    force: bool = False,
    registry: Path | None = None,
) -> Scaffold:
    """Everything for one operator, not yet written.

    `operator`: the operator whose kernel serves the requested one, from `Source.serving`.
    Raises ScaffoldError for an operator that is not a gap, unless `force`, or a folder with other files.
    """
    if not force:
        require_gap(operator)
        require_no_kernel(operator, registry)
    destination = destination_of(operator, target, out)
    if not force:
        destination.require_own(operator, target)
    # They import torch, which takes seconds: a refusal does not wait for it.
    from ..operators.isolated_observation import observations_of
    from ..operators.references import references_of

    opinfos = opinfos_for(operator.name)
    choice = Choice(kind, "your choice") if kind else kind_of(operator, opinfos.kind)
    samples = opinfos.names if operator.is_reached_by_samples else ()
    dtypes = frozenset(dtype for name in samples for dtype in supported_dtypes(name, "cpu"))
    request = Request(operator, choice.kind, samples, observations_of(operator), references_of(operator), dtypes)
    generated = _generate(request, target, destination)
    manifest = Manifest(
        operator.full_name,
        target.value,
        choice.kind.value,
        operator.release,
        generated.registers,
        generated.include,
        generated.definitions,
        generated.arc,
    )
    planned = plan(destination, generated.files, manifest)
    return Scaffold(operator, requested, choice, target, destination, planned)


def apply(scaffolds: Sequence[Scaffold], *, force: bool = False, registry: Path | None = None) -> list[str]:
    """Write the files, then set the status of the registry's entries to `scaffolded`, unless a later one is set.

    Returns the operators whose entry changed. Raises ScaffoldError before anything is written if files are in the way.
    """
    if not force:
        for scaffold in scaffolds:
            require_no_conflicts(scaffold.plan)
    for scaffold in scaffolds:
        write(scaffold.plan, force=force)
    entries = load(registry)
    operators = [scaffold.operator.full_name for scaffold in scaffolds]
    moving = [name for name in operators if name not in entries or entries[name].status not in _FURTHER]
    if moving:
        edit_all(registry, {operator: {"status": Status.scaffolded} for operator in moving}, add=True)
    return moving


def _generate(request: Request, target: KernelTarget, destination: Destination) -> Generated:
    if target is KernelTarget.SHADER:
        return shader.generate(request, in_package=destination.in_package)
    if target is KernelTarget.EXTENSION:
        return extension.generate(request)
    return upstream.generate(request, upstream.tree_of(files_of(request.operator.release)), destination.text_of)
