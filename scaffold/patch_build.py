"""Builds a patch against PyTorch for the simulated device, and runs the patch's own test there.

Generates and builds only torchgen's output for the rows that the patch adds. The module is also
the pytest plugin of that test: it loads the patch's kernels before any test runs.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import tempfile
from dataclasses import asdict, dataclass
from pathlib import Path

from ..simulator.objc.loading import load_extension
from ..simulator.upstream.building import build_one
from ..simulator.upstream.operations import OPERATIONS, OperationFile
from ..simulator.upstream.registrations import MpsYaml
from .building.trial import TrialResult, try_tests
from .errors import ScaffoldError
from .proof.patches import TREE_YAML, apply_patch
from .release_files import ReleaseFiles, files_of

TREE = "tree"
LIBRARY = "MPSMITH_PATCH"
"""The environment variable that tells the test's process which library to load."""

_ENTRY = re.compile(r"^(?=- func: )", re.MULTILINE)
_NAME = re.compile(r"- func: (?P<operator>\w+)")


@dataclass(frozen=True)
class PatchLibrary:
    """The library of a patch and the aten overloads that it registers for MPS, without namespace."""

    library: str
    overloads: tuple[str, ...]

    def to_json(self) -> str:
        """The value of the environment variable `LIBRARY`."""
        return json.dumps(asdict(self))


def pytest_configure() -> None:
    """Load the simulated device without its kernels for the patch's overloads, then the patch's library."""
    from ..kernels.verification.device_under_test import device_without

    patch = json.loads(os.environ[LIBRARY])
    device_without(*patch["overloads"])
    load_extension(Path(patch["library"]))


def is_patch(folder: Path) -> bool:
    """Whether the folder holds a scaffold of the target `upstream`."""
    return any(folder.glob("*.patch"))


def try_scaffold(path: Path) -> TrialResult:
    """Run the tests of a scaffold. A patch is built first; other tests build and import the kernel themselves.

    Raises:
        ScaffoldError: the folder has no tests, they could not be started, or a patch does not build.
        ExtensionError: this machine lacks what a patch's build needs.
    """
    if not is_patch(path):
        return try_tests(path)
    environment = {LIBRARY: build_patch(path).to_json()}
    return try_tests(path, plugin=__name__, environment=environment)


def build_patch(folder: Path) -> PatchLibrary:
    """Compile the code in the folder's `tree` with the registrations of the rows that its patch adds.

    Raises ScaffoldError if the patch is for another release than the installed torch, does not apply, adds no row, or
    does not compile.
    """
    (patch,) = folder.glob("*.patch")
    files = files_of(None)
    before, after = files.native_functions.read_text("utf-8"), _patched_rows(patch, files)
    changed = set(_ENTRY.split(after)) - set(_ENTRY.split(before))
    operators = {match["operator"] for entry in changed if (match := _NAME.match(entry))}
    if not operators:
        raise ScaffoldError(f"{patch.name} adds no row to {TREE_YAML.name}: there is nothing to run")
    yaml = MpsYaml(after, files.tags, operators)
    native = {kernel.overload for kernel in MpsYaml(before, files.tags, operators).kernels}
    overloads = tuple(kernel.overload for kernel in yaml.kernels if kernel.overload not in native)
    root = folder / TREE
    host = [OperationFile(root, path) for path in sorted((root / OPERATIONS).glob("*.mm"))]
    built = build_one(patch.stem, host[0] if host else None, overloads, yaml)
    if not built.built:
        raise ScaffoldError(f"{patch.stem} does not build: {built.problem}")
    return PatchLibrary(built.library, overloads)


def _patched_rows(patch: Path, files: ReleaseFiles) -> str:
    """The text of native_functions.yaml with the rows of a patch."""
    with tempfile.TemporaryDirectory(prefix="mpsmith-patch-") as temporary:
        path = Path(temporary) / TREE_YAML
        path.parent.mkdir(parents=True)
        shutil.copy(files.native_functions, path)
        problem = apply_patch(patch, Path(temporary), [f"--include={TREE_YAML}"])
        if problem:
            raise ScaffoldError(f"{patch.name} does not apply to torch {files.release}: {problem[1]}")
        return path.read_text("utf-8")
