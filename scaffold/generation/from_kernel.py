"""`mpsmith scaffold OP --target upstream --from-kernel`: a finished family as a patch against PyTorch."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from ..manifest import Manifest
from ..operators.source import Source
from ..release_files import files_of
from ..targets import KernelTarget
from ..targets.upstream.evidence import FamilyEvidence
from ..targets.upstream.family import Family, FamilyPatch, generate
from ..targets.upstream.patch import tree_of
from .destination import Destination, destination_for
from .writing import Plan, plan

# Measures a family and the OpInfos of its operators.
Measure = Callable[[Family], FamilyEvidence]


@dataclass(frozen=True)
class FamilyScaffold:
    """A family's patch and its files, ready to be written."""

    patch: FamilyPatch
    destination: Destination
    plan: Plan

    @property
    def next_command(self) -> str:
        """The command to run next."""
        return f"mpsmith check {self.destination.folder}"


def prepare_patch(
    source: Source, family: Family, measure: Measure | None, *, out: Path | None = None, force: bool = False
) -> FamilyScaffold:
    """The patch of a family, not yet written.

    `measure`: gives the evidence for the description; None for a patch without evidence.
    Raises ScaffoldError if there is nothing to patch or the folder holds
    something else.
    """
    tree = tree_of(files_of(source.release))
    patch = generate(family, source, tree)  # fails before anything is measured
    if measure:
        patch = generate(family, source, tree, measure(family))
    operator = patch.operators[0]
    destination = destination_for(f"{family.name}_{KernelTarget.UPSTREAM.value}", out)
    if not force:
        destination.require_own(operator, KernelTarget.UPSTREAM)
    generated = patch.generated
    manifest = Manifest(
        operator.full_name,
        KernelTarget.UPSTREAM.value,
        "family",
        source.release,
        generated.registers,
        generated.include,
        generated.definitions,
        generated.arc,
    )
    return FamilyScaffold(patch, destination, plan(destination, generated.files, manifest))
