"""`mpsmith scaffold OP --target upstream --from-kernel`: from a finished family to a plan of a patch's files."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from ..manifest import Manifest
from ..operators.source import Source
from ..release_files import files_of
from ..targets import KernelTarget
from ..targets.upstream.evidence import FamilyEvidence
from ..targets.upstream.family import FamilyPatch, family_of, generate, opinfos_of
from ..targets.upstream.patch import tree_of
from .destination import Destination, destination_for
from .writing import Plan, plan

KIND = "family"
# Measures a family whose OpInfos are given.
Measure = Callable[[str, tuple[str, ...]], FamilyEvidence]


@dataclass(frozen=True)
class FamilyScaffold:
    """A family's patch, ready to be written."""

    patch: FamilyPatch
    destination: Destination
    plan: Plan

    @property
    def next_command(self) -> str:
        """What to type next."""
        return f"mpsmith check {self.destination.folder}"


def prepare_from_kernel(
    source: Source, operator: str, measure: Measure | None, *, out: Path | None = None, force: bool = False
) -> FamilyScaffold:
    """The patch of the family that serves an operator, not yet written.

    Raises UnknownKernelError for an operator without a kernel, and what `prepare_family` raises.
    """
    return prepare_family(source, family_of(operator), measure, out=out, force=force)


def prepare_family(
    source: Source, family: str, measure: Measure | None, *, out: Path | None = None, force: bool = False
) -> FamilyScaffold:
    """The patch of a family, not yet written.

    `measure`: gives the evidence for the description; None for a patch without.
    Raises ScaffoldError where there is nothing to patch, or the folder holds something else.
    """
    tree = tree_of(files_of(source.release))
    generate(family, source, tree)  # refuses what cannot be patched before anything is measured
    patch = generate(family, source, tree, measure(family, opinfos_of(family)) if measure else None)
    operator = patch.operators[0]
    destination = destination_for(f"{family}_upstream", out)
    if not force:
        destination.require_own(operator, KernelTarget.UPSTREAM)
    generated = patch.generated
    manifest = Manifest(
        operator.full_name,
        KernelTarget.UPSTREAM.value,
        KIND,
        source.release,
        generated.registers,
        generated.include,
        generated.definitions,
        generated.arc,
    )
    return FamilyScaffold(patch, destination, plan(destination, generated.files, manifest))
