"""How far each finished family comes: as a patch and as an extension, built for macOS, run on the simulated device.

What was proved is noted in the folder of the survey, and is not tried again until something that decides it changes.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

from ..cache import fingerprint, fingerprint_of_code
from ..kernels.runtime import catalog
from ..kernels.verification.evidence import source_digest
from .errors import NothingToPatchError, ScaffoldError, ToolchainError
from .generation.from_kernel import FamilyScaffold, package_of_patch, prepare_family
from .generation.writing import write
from .operators.source import Source
from .patch_running import run
from .proof.checking import check_files
from .proof.findings import has_errors
from .proof.patches import check_patch
from .release_files import ReleaseFiles, files_of
from .targets.upstream.family import FamilyPatch

YES = "yes"
ROWS_ALONE = "no code"
UNNEEDED = "not needed"
NOT_RUN = "not run"
_PROVED = "proved.jsonl"
# What else decides how a family's code runs.
_DECIDING_CODE = (
    "kernels.runtime",
    "kernels.verification",
    "simulator.objc",
    "simulator.metal",
    "scaffold.patch_running",
)


@dataclass(frozen=True)
class FamilyRow:
    """What became of one family; each field is `yes`, or why not, or empty where an earlier one is no yes.

    Attributes:
        family: its name.
        overloads: those that get a kernel.
        made: whether there is a patch; `not needed` where the release has all the kernels.
        applies: whether it applies to the release, and its torchgen accepts the result.
        builds: whether its host code and Metal build for macOS.
        extension: whether the same code builds for macOS as an extension, with its registrations; `no code` for rows
            alone.
        runs: whether all of the family's cases give what the family gives: the extension on the simulated device.
        cases: how many did.
    """

    family: str
    overloads: tuple[str, ...] = ()
    made: str = ""
    applies: str = ""
    builds: str = ""
    extension: str = ""
    runs: str = ""
    cases: int = 0

    @property
    def proved(self) -> bool:
        """Whether there is a patch, and nothing is left to do."""
        steps = {self.made, self.applies, self.builds, self.runs}
        return steps == {YES} and self.extension in (YES, ROWS_ALONE)


def finished_families() -> list[str]:
    """The families that the registry calls finished. Raises RegistryError when it cannot be read."""
    return sorted({entry.kernel for entry in catalog.finished_entries()})


def survey(source: Source, families: Iterable[str], folder: Path, *, running: bool = True) -> Iterator[FamilyRow]:
    """A row for each family, as soon as it is there.

    `folder`: gets the patch of each family and its extension, in place of what is there, and notes of what was proved.
    `running`: whether to run them, where the release is the installed one.
    """
    files = files_of(source.release)
    known = _known(folder / _PROVED)
    for family in families:
        try:
            made = prepare_family(source, family, None, out=folder / "patches" / family, force=True)
        except NothingToPatchError:
            yield FamilyRow(family, made=UNNEEDED)
            continue
        except ScaffoldError as error:
            yield FamilyRow(family, made=str(error))
            continue
        package = _package(made.patch, source.release, folder / "extensions" / family)
        for one in (made, package):
            if one:
                write(one.plan, force=True)
        key = _key(made, package)
        row = known.get(key) or _row(made.patch, package, files, folder, running)
        if row.proved and key not in known:
            with (folder / _PROVED).open("a", encoding="utf-8") as lines:
                lines.write(json.dumps({"key": key, **asdict(row)}) + "\n")
        yield row


def _package(patch: FamilyPatch, release: str, folder: Path) -> FamilyScaffold | None:
    return package_of_patch(patch, release, out=folder, force=True) if patch.host else None


def _key(made: FamilyScaffold, package: FamilyScaffold | None) -> str:
    """Changes with everything that decides a family's row: what was generated, the family, its cases and our code."""
    family = made.patch.family
    texts = [change.after for one in (made, package) if one for change in one.plan.changes]
    cases = (catalog.folder_of(family) / "cases.py").read_text("utf-8")
    return fingerprint(
        made.plan.manifest.torch, *texts, source_digest(family), cases, fingerprint_of_code(*_DECIDING_CODE)
    )


def _known(path: Path) -> dict[str, FamilyRow]:
    """The rows that were proved, by key; a last line that was cut off is left out."""
    rows = {}
    for line in path.read_text("utf-8").splitlines() if path.is_file() else ():
        try:
            data = json.loads(line)
            key = data.pop("key")
            rows[key] = FamilyRow(**{**data, "overloads": tuple(data["overloads"])})
        except (ValueError, TypeError, KeyError):
            continue
    return rows


def _row(
    patch: FamilyPatch, package: FamilyScaffold | None, files: ReleaseFiles, folder: Path, running: bool
) -> FamilyRow:
    place = folder / "patches" / patch.family
    path = place / f"{patch.family}.patch"
    refused = [one for one in check_patch(path, path.read_text("utf-8"), files.root) if one.severity == "error"]
    overloads = tuple(patch.rows.kernels)
    if refused:
        return FamilyRow(patch.family, overloads, YES, refused[0].message)
    own = [file for file in sorted(place.rglob("*")) if file.suffix in (".mm", ".metal")]
    builds = _builds(own, files.release)
    extension = _builds([package.plan.folder / "src" / "extension.mm"], files.release) if package else ROWS_ALONE
    ran, cases = _runs(patch, folder / "extensions" / patch.family) if running and files.installed else (NOT_RUN, 0)
    return FamilyRow(patch.family, overloads, YES, YES, builds, extension, ran, cases)


def _builds(code: list[Path], release: str) -> str:
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
    try:
        ran = run(patch, folder)
    except ScaffoldError as error:
        return str(error), 0
    if ran.same:
        return YES, ran.cases
    if not ran.differences:
        return "no case ran", ran.cases
    total = ran.cases + len(ran.differences)
    return f"{len(ran.differences)} of {total} cases differ, first {ran.differences[0]}", ran.cases
