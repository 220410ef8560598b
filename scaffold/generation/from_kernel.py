"""`mpsmith scaffold OP --from-kernel`: from a finished family to its patch, or to an extension."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from ..manifest import Manifest
from ..operators.source import Source
from ..release_files import files_of
from ..targets import Generated, KernelTarget, family_extension
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
    """A family's patch, and the files of it or of the extension with the same code, ready to be written."""

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
    patch = generate(family, source, tree)  # refuses what cannot be patched before anything is measured
    if measure:
        patch = generate(family, source, tree, measure(family, opinfos_of(family)))
    return _prepared(patch, patch.generated, KernelTarget.UPSTREAM, source.release, out, force)


def prepare_extension(source: Source, family: str, *, out: Path | None = None, force: bool = False) -> FamilyScaffold:
    """A family as a package with the host code of its patch, not yet written. Raises what `package_of_patch` raises."""
    patch = generate(family, source, tree_of(files_of(source.release)))
    return package_of_patch(patch, source.release, out=out, force=force)


def package_of_patch(
    patch: FamilyPatch, release: str, *, out: Path | None = None, force: bool = False
) -> FamilyScaffold:
    """A patch's code as a package, not yet written.

    Raises ScaffoldError where there is no code to build, or the folder holds something else.
    """
    files = files_of(release)
    generated = family_extension.generate(patch, files.tags, files.include)
    return _prepared(patch, generated, KernelTarget.EXTENSION, release, out, force)


def _prepared(
    patch: FamilyPatch, generated: Generated, target: KernelTarget, release: str, out: Path | None, force: bool
) -> FamilyScaffold:
    operator = patch.operators[0]
    destination = destination_for(f"{patch.family}_{target.value}", out)
    if not force:
        destination.require_own(operator, target)
    manifest = Manifest(
        operator.full_name,
        target.value,
        KIND,
        release,
        generated.registers,
        generated.include,
        generated.definitions,
        generated.arc,
    )
    return FamilyScaffold(patch, destination, plan(destination, generated.files, manifest))
