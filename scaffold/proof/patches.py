"""Checks a patch against PyTorch's tree: it applies to the files that the wheel ships, and torchgen accepts the result.

The wheel holds the files of the tree that such a patch changes: native_functions.yaml, common_methods_invocations.py
and, in newer releases, common_mps.py.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from ...simulator.clang import Diagnostic
from ..release_files import COMMON_MPS, NATIVE_FUNCTIONS, OPINFOS
from .diagnostics import line_of

TREE_YAML = Path("aten/src/ATen/native/native_functions.yaml")

# Where the files of the wheel stand in the source tree.
SHIPPED = {TREE_YAML: NATIVE_FUNCTIONS, COMMON_MPS: COMMON_MPS, OPINFOS: OPINFOS}

_CHANGED = re.compile(r"^diff --git a/(\S+) b/", re.MULTILINE)
_NEW_FILE = re.compile(r"^diff --git a/(\S+) b/\S+\nnew file", re.MULTILINE)


def check_patch(path: Path, text: str, wheel: Path, made_for: str = "") -> list[Diagnostic]:
    """Findings about a patch; a file that the wheel does not ship cannot be judged and gives a note.

    `wheel`: the folder that holds `torch` and `torchgen` of the release. `made_for`: that of the patch, if known.
    """
    with tempfile.TemporaryDirectory(prefix="mpsmith-patch-") as temporary:
        tree = Path(temporary)
        there = {place: wheel / shipped for place, shipped in SHIPPED.items() if (wheel / shipped).is_file()}
        for place, shipped in there.items():
            (tree / place).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(shipped, tree / place)
        unknown = sorted(set(_CHANGED.findall(text)) - set(_NEW_FILE.findall(text)) - {str(place) for place in there})
        lacks = "is not in the wheel: not judged"
        findings = [
            Diagnostic(str(path), line_of(text, f"a/{name}"), 0, "note", f"{name} {lacks}", "patch") for name in unknown
        ]
        problem = apply_patch(path, tree, [f"--exclude={name}" for name in unknown])
        if problem:
            hint = f"it was made for torch {made_for}" if made_for else "if it was made for another release"
            said = f"{problem[1]}; {hint}: mpsmith check --setup --torch {made_for or 'RELEASE'} {path}"
            return [*findings, Diagnostic(str(path), problem[0], 0, "error", said, "patch")]
        problems = torchgen_problems(tree / TREE_YAML, wheel)
        return findings + [Diagnostic(str(path), 0, 0, "error", text, "patch") for text in problems]


def apply_patch(path: Path, tree: Path, options: list[str] | None = None) -> tuple[int, str] | None:
    """Apply a patch in a folder with `git apply`; the line of the patch and the message when that fails."""
    command = ["git", "apply", "--whitespace=error-all", *(options or []), str(path.resolve())]
    done = subprocess.run(command, cwd=tree, capture_output=True, text=True, check=False)
    if done.returncode == 0:
        return None
    message = next((line for line in done.stderr.splitlines() if line.startswith("error:")), done.stderr.strip())
    place = re.search(r"(?:patch failed: \S+:|at line |\.patch:)(\d+)", message)
    return (int(place[1]) if place and "patch failed" not in message else 0, message.removeprefix("error: "))


_PARSE = """\
import sys
sys.path.insert(0, sys.argv[1])
from torchgen.gen import parse_native_yaml
parse_native_yaml(sys.argv[2], sys.argv[3])
"""


def torchgen_problems(native_functions: Path, wheel: Path) -> list[str]:
    """Errors of a release's own torchgen (in the folder `wheel`) about a yaml; empty if it accepts it."""
    tags = wheel / NATIVE_FUNCTIONS.with_name("tags.yaml")
    command = [sys.executable, "-c", _PARSE, str(wheel), str(native_functions), str(tags)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode == 0:
        return []
    raised = [line for line in done.stderr.splitlines() if line and not line.startswith(" ")]
    return [f"torchgen refuses the patched native_functions.yaml: {raised[-1] if raised else 'without a message'}"]
