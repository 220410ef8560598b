"""A patch against PyTorch on this machine: its files of the tree, compiled for the simulated device, and its own test.

What PyTorch's build generates for the rows that the patch adds is generated here; nothing else of PyTorch is built. The
test runs in a process that has the patch's kernels on its simulated device before (patched_device).
"""

from __future__ import annotations

import json
import re
import shutil
import tempfile
from dataclasses import asdict, dataclass
from pathlib import Path

from ..simulator.upstream.building import build_one
from ..simulator.upstream.operations import OPERATIONS, OperationFile
from ..simulator.upstream.registrations import MpsYaml
from .building.trial import TrialResult, try_tests
from .errors import ScaffoldError
from .proof.patches import TREE_YAML, apply_patch
from .release_files import ReleaseFiles, files_of

TREE = "tree"
LIBRARY = "MPSMITH_PATCH"
"""The variable through which the tests' process is told what to load (patched_device)."""

_ENTRY = re.compile(r"^(?=- func: )", re.MULTILINE)
_NAME = re.compile(r"- func: (?P<operator>\w+)")


@dataclass(frozen=True)
class PatchLibrary:
    """The library of a patch, and the overloads of aten that it registers under MPS, without namespace."""

    library: str
    overloads: tuple[str, ...]

    def to_json(self) -> str:
        """What `LIBRARY` holds."""
        return json.dumps(asdict(self))


def is_patch(folder: Path) -> bool:
    """Whether a scaffold of the target `upstream` stands there."""
    return (folder / TREE / "test").is_dir() and any(folder.glob("*.patch"))


def try_scaffold(path: Path) -> TrialResult:
    """Run the tests of a scaffold, which build and import what they test; a patch is built before.

    Raises:
        ScaffoldError: no tests came with what stands there, they could not be started, or a patch does not build.
        ExtensionError: this machine lacks what a patch's build needs.
    """
    if not is_patch(path):
        return try_tests(path)
    environment = {LIBRARY: build_patch(path).to_json()}
    return try_tests(path, f"{TREE}/test", plugin=f"{__package__}.patched_device", environment=environment)


def build_patch(folder: Path) -> PatchLibrary:
    """Compile what a scaffolded patch brings, with the registrations of its rows.

    The code is that of the folder `tree`, where it is written; the rows are those of the patch.
    Raises ScaffoldError where the patch is of another release than the installed torch, does not apply, adds no row, or
    its code does not compile.
    """
    (patch,) = folder.glob("*.patch")
    files = files_of(None)
    before, after = files.native_functions.read_text("utf-8"), _patched_rows(patch, files)
    changed = set(_ENTRY.split(after)) - set(_ENTRY.split(before))
    operators = {match["operator"] for entry in changed if (match := _NAME.match(entry))}
    if not operators:
        raise ScaffoldError(f"{patch.name} adds no row to {TREE_YAML.name}: there is nothing to run")
    yaml = MpsYaml(after, files.tags, operators)
    known = {kernel.overload for kernel in MpsYaml(before, files.tags, operators).kernels}
    overloads = tuple(kernel.overload for kernel in yaml.kernels if kernel.overload not in known)
    root = folder / TREE
    host = [OperationFile(root, path) for path in sorted((root / OPERATIONS).glob("*.mm"))]
    built = build_one(patch.stem, host[0] if host else None, overloads, yaml)
    if not built.built:
        raise ScaffoldError(f"{patch.stem} does not build: {built.problem}")
    return PatchLibrary(built.library, overloads)


def _patched_rows(patch: Path, files: ReleaseFiles) -> str:
    """The text of native_functions.yaml with the rows of a patch."""
    with tempfile.TemporaryDirectory(prefix="mpsmith-patch-") as temporary:
        place = Path(temporary) / TREE_YAML
        place.parent.mkdir(parents=True)
        shutil.copy(files.native_functions, place)
        problem = apply_patch(patch, Path(temporary), [f"--include={TREE_YAML}"])
        if problem:
            raise ScaffoldError(f"{patch.name} does not apply to torch {files.release}: {problem[1]}")
        return place.read_text("utf-8")
