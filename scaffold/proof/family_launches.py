"""Compares each launch of a family's Python host code with the signature of its Metal kernel.

The arguments of a Python launch are known only at run time. The family's calls run on the simulated device in a new
process (`launch_recorder`), which compares each launch before it happens.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from ...simulator.clang import Diagnostic

RULE = "launch"
RUN = "launches"
# The rule of the note that launches were not compared.
NOT_RUN = "launches: not run"

_SECONDS = 900
_FAMILIES = Path(__file__).resolve().parents[2] / "kernels"
_CALLERS_VARIABLES = ("MPSMITH_SIMULATE", "MPSMITH_AUTOLOAD", "MPSMITH_METAL_MODE")


def family_of(path: Path) -> str | None:
    """The mpsmith family whose Metal source the file is, or None."""
    path = path.resolve()
    is_family = path.suffix == ".metal" and path.stem == path.parent.name and path.parent.parent == _FAMILIES
    return path.stem if is_family and path.with_suffix(".py").is_file() else None


def is_part_of_a_patch(path: Path) -> bool:
    """Whether a file is a family's host code for PyTorch's tree, which is complete only in a patch."""
    return path.name == "upstream.mm" and path.resolve().parent.parent == _FAMILIES


def python_of(path: Path) -> list[Path]:
    """The Python files of the family."""
    return sorted(path.resolve().parent.glob("*.py"))


def check_family_launches(path: Path, family: str) -> list[Diagnostic]:
    """Findings about the family's launches, at the Python lines that launch."""
    environment = {name: value for name, value in os.environ.items() if name not in _CALLERS_VARIABLES}
    command = [sys.executable, "-m", f"{__package__}.launch_recorder", family]
    try:
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=_SECONDS, check=False)
    except subprocess.TimeoutExpired:
        return [_at(path, "error", f"its calls did not end within {_SECONDS} seconds")]
    lines = done.stdout.strip().splitlines()
    if done.returncode != 0 or not lines:
        reason = (done.stderr.strip().splitlines() or [f"the process ended with {done.returncode}"])[-1]
        if done.returncode == NOTHING_TO_RUN_ON:
            return [_at(path, "note", f"its launches were not compared: {reason}", NOT_RUN)]
        return [_at(path, "error", f"its calls could not be run: {reason}")]
    report = json.loads(lines[-1])
    findings = [Diagnostic(row["file"], row["line"], 0, "error", row["message"], RULE) for row in report["findings"]]
    if not findings and not report["launches"]:
        return [_at(path, "note", "its launches were not compared: its own calls launch nothing here", NOT_RUN)]
    return findings


NOTHING_TO_RUN_ON = 3
"""The exit status of the process if there is no simulated device."""


def _at(path: Path, severity: str, message: str, rule: str = RULE) -> Diagnostic:
    return Diagnostic(str(path), 0, 0, "note" if severity == "note" else "error", message, rule)
