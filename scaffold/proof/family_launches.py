"""Launches of a family in Python against the Metal source beside it, launch by launch.

What host code in Python binds is only known when it runs. So the family's own calls run, on the simulated device and in
a process of their own, and each launch is compared with the kernel's signature before it happens.
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
# Why launches were not compared, where there is nothing to compare them on.
NOT_RUN = "launches: not run"

_SECONDS = 900
_FAMILIES = Path(__file__).resolve().parents[2] / "kernels"
_NOT_OF_THE_FAMILY = ("MPSMITH_SIMULATE", "MPSMITH_AUTOLOAD", "MPSMITH_METAL_MODE")


def family_of(path: Path) -> str | None:
    """The family of mpsmith's own whose Metal source a file is, or None."""
    path = path.resolve()
    is_family = path.suffix == ".metal" and path.stem == path.parent.name and path.parent.parent == _FAMILIES
    return path.stem if is_family and path.with_suffix(".py").is_file() else None


def is_part_of_a_patch(path: Path) -> bool:
    """Whether a file is host code of mpsmith's own for PyTorch's tree, which only a patch makes whole."""
    return path.name == "upstream.mm" and path.resolve().parent.parent == _FAMILIES


def python_of(path: Path) -> list[Path]:
    """The Python files that decide what the family binds."""
    return sorted(path.resolve().parent.glob("*.py"))


def check_family_launches(path: Path, family: str) -> list[Diagnostic]:
    """What is wrong with the family's launches, at the lines of Python that make them."""
    environment = {name: value for name, value in os.environ.items() if name not in _NOT_OF_THE_FAMILY}
    words = [sys.executable, "-m", f"{__package__}.recorded_launches", family]
    try:
        done = subprocess.run(words, env=environment, capture_output=True, text=True, timeout=_SECONDS, check=False)
    except subprocess.TimeoutExpired:
        return [_at(path, "error", f"its calls did not end within {_SECONDS} seconds")]
    lines = done.stdout.strip().splitlines()
    if done.returncode != 0 or not lines:
        reason = (done.stderr.strip().splitlines() or [f"the process ended with {done.returncode}"])[-1]
        if done.returncode == NOTHING_TO_RUN_ON:
            return [_at(path, "note", f"its launches were not compared: {reason}", NOT_RUN)]
        return [_at(path, "error", f"its calls could not be run: {reason}")]
    told = json.loads(lines[-1])
    found = [Diagnostic(row["file"], row["line"], 0, "error", row["message"], RULE) for row in told["findings"]]
    if not found and not told["launches"]:
        return [_at(path, "note", "its launches were not compared: its own calls launch nothing here", NOT_RUN)]
    return found


NOTHING_TO_RUN_ON = 3
"""What the process ends with where there is no simulated device."""


def _at(path: Path, severity: str, message: str, rule: str = RULE) -> Diagnostic:
    return Diagnostic(str(path), 0, 0, "note" if severity == "note" else "error", message, rule)
