"""Checks every finished family as a patch: it applies to PyTorch, builds for macOS, runs on the simulated device.

A family that passed is noted in the survey's folder and not tried again until its inputs change.
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
from .generation.from_kernel import FamilyScaffold, prepare_patch
from .generation.writing import write
from .operators.source import Source
from .patch_comparison import compare
from .proof.checking import check_files
from .proof.diagnostics import has_errors
from .proof.patches import check_patch
from .release_files import ReleaseFiles, files_of
from .targets.upstream.family import Family, FamilyPatch

YES = "yes"
UNNEEDED = "not needed"
NOT_RUN = "not run"
_PROVED = "proved.jsonl"
_DECIDING_CODE = (
    "kernels.runtime",
    "kernels.verification",
    "simulator.objc",
    "simulator.metal",
    "simulator.upstream",
    "scaffold.patch_build",
    "scaffold.patch_comparison",
)


@dataclass(frozen=True)
class FamilyRow:
    """The result for one family. Each field is `yes`, or why not, or empty if an earlier field is not `yes`.

    Attributes:
        family: its name.
        overloads: the overloads that get a kernel.
        made: whether there is a patch; `not needed` if the release has all the kernels.
        applies: whether it applies to the release, and the release's torchgen accepts the result.
        builds: whether its host code and Metal build for macOS.
        runs: whether the patch gives the family's result in all of the family's cases, on the simulated device.
        cases: how many cases gave it.
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
        """Whether every step succeeded."""
        return {self.made, self.applies, self.builds, self.runs} == {YES}


def finished_families() -> list[str]:
    """The families that the registry calls finished. Raises RegistryError when it cannot be read."""
    return sorted({entry.kernel for entry in catalog.finished_entries()})


def survey(source: Source, families: Iterable[str], folder: Path, *, running: bool = True) -> Iterator[FamilyRow]:
    """A row for each family, as soon as it is known.

    `folder`: gets the patch of each family and the notes of what passed.
    `running`: whether to run the patches, if the release is the installed one.
    """
    files = files_of(source.release)
    proved = _proved_rows(folder / _PROVED)
    for family in families:
        try:
            scaffold = prepare_patch(source, Family.named(family), None, out=folder / "patches" / family, force=True)
        except NothingToPatchError:
            yield FamilyRow(family, made=UNNEEDED)
            continue
        except ScaffoldError as error:
            yield FamilyRow(family, made=str(error))
            continue
        write(scaffold.plan, force=True)
        key = _key(scaffold)
        row = proved.get(key) or _row(scaffold.patch, scaffold.plan.folder, files, running)
        if row.proved and key not in proved:
            with (folder / _PROVED).open("a", encoding="utf-8") as lines:
                lines.write(json.dumps({"key": key, **asdict(row)}) + "\n")
        yield row


def _key(scaffold: FamilyScaffold) -> str:
    """Changes with everything that decides a family's row: what was generated, the family, its cases and our code."""
    family = scaffold.patch.family
    texts = [change.after for change in scaffold.plan.changes]
    cases = (catalog.folder_of(family) / "cases.py").read_text("utf-8")
    code = fingerprint_of_code(*_DECIDING_CODE)
    return fingerprint(scaffold.plan.manifest.torch, *texts, source_digest(family), cases, code)


def _proved_rows(path: Path) -> dict[str, FamilyRow]:
    """The rows that passed, by key. A truncated last line is ignored."""
    rows = {}
    for line in path.read_text("utf-8").splitlines() if path.is_file() else ():
        try:
            data = json.loads(line)
            key = data.pop("key")
            rows[key] = FamilyRow(**{**data, "overloads": tuple(data["overloads"])})
        except (ValueError, TypeError, KeyError):
            continue
    return rows


def _row(patch: FamilyPatch, folder: Path, files: ReleaseFiles, running: bool) -> FamilyRow:
    path = folder / f"{patch.family}.patch"
    errors = [one for one in check_patch(path, path.read_text("utf-8"), files.root) if one.severity == "error"]
    overloads = tuple(patch.rows.kernels)
    if errors:
        return FamilyRow(patch.family, overloads, YES, errors[0].message)
    code = [file for file in sorted(folder.rglob("*")) if file.suffix in (".mm", ".metal")]
    runs, cases = _runs(patch.family, folder) if running and files.installed else (NOT_RUN, 0)
    return FamilyRow(patch.family, overloads, YES, YES, _builds(code, files.release), runs, cases)


def _builds(code: list[Path], release: str) -> str:
    try:
        for result in check_files(code, release):
            if has_errors(result.findings):
                return str(next(finding for finding in result.findings if finding.severity == "error"))
            if not result.checked:
                return f"{result.path.name} was not checked"
    except ToolchainError as error:
        return f"not checked: {error}"
    return YES


def _runs(family: str, folder: Path) -> tuple[str, int]:
    try:
        ran = compare(family, folder)
    except ScaffoldError as error:
        return str(error), 0
    if ran.same:
        return YES, ran.cases
    if not ran.differences:
        return "no case ran", ran.cases
    total = ran.cases + len(ran.differences)
    return f"{len(ran.differences)} of {total} cases differ, first {ran.differences[0]}", ran.cases
