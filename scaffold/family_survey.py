"""How far the patch of each finished family comes: made, applied, built for macOS, run on the simulated device."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from ..kernels.runtime import catalog
from .errors import ScaffoldError, ToolchainError
from .generation.from_kernel import prepare_family
from .generation.writing import write
from .operators.source import Source
from .patch_running import lay_out, run
from .proof.checking import check_files
from .proof.findings import has_errors
from .proof.patches import check_patch
from .release_files import ReleaseFiles, files_of
from .targets.upstream.family import FamilyPatch

YES = "yes"


@dataclass(frozen=True)
class FamilyRow:
    """What became of one family's patch; each field is `yes`, or why not, or empty where an earlier one is no yes.

    Attributes:
        family: its name.
        overloads: those that the patch has rows for.
        made: whether there is a patch.
        applies: whether it applies to the release, and its torchgen accepts the result.
        builds: whether its host code and Metal build for macOS.
        runs: whether all of the family's cases give what the family gives, on the simulated device.
        cases: how many did.
    """

    family: str
    overloads: tuple[str, ...] = ()
    made: str = ""
    applies: str = ""
    builds: str = ""
    runs: str = ""
    cases: int = 0

    @property
    def proved(self) -> bool:
        """Whether nothing is left to do."""
        return self.made == self.applies == self.builds == self.runs == YES


def finished_families() -> list[str]:
    """The families that the registry calls finished. Raises RegistryError when it cannot be read."""
    return sorted({entry.kernel for entry in catalog.finished_entries()})


def survey(source: Source, families: Iterable[str], folder: Path, *, running: bool = True) -> Iterator[FamilyRow]:
    """A row for each family, as soon as it is there.

    `folder`: gets a folder with the patch for each family, in place of one that is there.
    `running`: whether to run them, where the release is the installed one.
    """
    files = files_of(source.release)
    for family in families:
        try:
            made = prepare_family(source, family, None, out=folder / family, force=True)
        except ScaffoldError as error:
            yield FamilyRow(family, made=str(error))
            continue
        write(made.plan, force=True)
        yield _row(made.patch, files, folder / family, running)


def _row(patch: FamilyPatch, files: ReleaseFiles, folder: Path, running: bool) -> FamilyRow:
    path = folder / f"{patch.family}.patch"
    findings = check_patch(path, path.read_text("utf-8"), files.root)
    refused = [finding for finding in findings if finding.severity == "error"]
    overloads = tuple(patch.rows.kernels)
    if refused:
        return FamilyRow(patch.family, overloads, YES, refused[0].message)
    ran, cases = _runs(patch, folder) if running and files.installed else ("not run", 0)
    return FamilyRow(patch.family, overloads, YES, YES, _builds(patch, folder, files.release), ran, cases)


def _builds(patch: FamilyPatch, folder: Path, release: str) -> str:
    if not patch.host:
        return YES  # rows alone
    code = [file for file in sorted(folder.rglob("*")) if file.suffix in (".mm", ".metal")]
    try:
        for answer in check_files(code, release):
            if has_errors(answer.findings):
                return str(next(finding for finding in answer.findings if finding.severity == "error"))
            if not answer.checked:
                return f"{answer.path.name} was not checked"
    except ToolchainError as error:
        return f"not checked: {error}"
    return YES


def _runs(patch: FamilyPatch, folder: Path) -> tuple[str, int]:
    tree = folder / "tree"
    try:
        lay_out(patch, tree)
        ran = run(patch, tree)
    except ScaffoldError as error:
        return str(error), 0
    if ran.same:
        return YES, ran.cases
    if not ran.differences:
        return "no case ran", ran.cases
    total = ran.cases + len(ran.differences)
    return f"{len(ran.differences)} of {total} cases differ, first {ran.differences[0]}", ran.cases
