"""A kernel passes the tests that come with it, as each target that is a package: `mpsmith check PATH --run`.

Filled in by hand, and from finished families.

python -m pytest tests/simulated/scaffold/test_scaffold_targets_run.py -m network
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = [pytest.mark.network, pytest.mark.timeout(1200)]  # Metal's declarations are fetched: mpsmith check --setup

_CHECK = re.compile(r"  (?:STD_TORCH_CHECK|TORCH_CHECK_NOT_IMPLEMENTED)\(\n\s+false, \"aten.*?\);\n", re.DOTALL)

# The bodies of the functors.
FUNCTORS = {
    "softshrink": (
        "    const float x = float(self);\n    return T(x > lambd ? x - lambd : x < -lambd ? x + lambd : x * 0.0f);\n"
    ),
    "softshrink_backward": (
        "    const float x = float(self);\n    return x >= -lambd && x <= lambd ? T(0.0f) : grad_output;\n"
    ),
}
_UNWRITTEN = re.compile(r"    return T\(float\(\w+\)\);\n")
# Operators of finished families.
FAMILIES = ("glu_jvp",)


def mpsmith(*arguments: str, registry: Path) -> subprocess.CompletedProcess[str]:
    environment = os.environ | {"MPSMITH_REGISTRY": str(registry), "MPSMITH_KERNELS": "off"}
    script = "from mpsmith.cli import main; main()"
    command = [sys.executable, "-c", script, *arguments]
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=1000, check=False)


def scaffolded(tmp_path: Path, operator: str, target: str, how: str = "--force") -> Path:
    (tmp_path / "registry").mkdir()
    out = tmp_path / f"{operator}_{target}"
    done = mpsmith("scaffold", operator, how, "--target", target, "--out", str(out), registry=tmp_path / "registry")
    assert done.returncode == 0, done.stderr
    return out


def write_kernel(out: Path, operator: str) -> None:
    """Fill in the functor, and take away the check that says that it is not written."""
    host, metal = out / "src" / f"{operator}.mm", out / "src" / f"{operator}_metal.h"
    text, count = _CHECK.subn("", host.read_text())
    assert count == 1
    host.write_text(text)
    text, count = _UNWRITTEN.subn(FUNCTORS[operator], metal.read_text())
    assert count == 1
    metal.write_text(text)


def assert_passes(out: Path) -> None:
    done = mpsmith("check", str(out), "--run", registry=out.parent / "registry")
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.search(r"tests: \d+ passed\. Run on mpsmith's simulated device", done.stdout), done.stdout


@pytest.mark.parametrize("target", ["extension", "stable"])
@pytest.mark.parametrize("operator", FUNCTORS)
def test_a_written_kernel_passes_its_tests(tmp_path: Path, operator: str, target: str) -> None:
    out = scaffolded(tmp_path, operator, target)
    write_kernel(out, operator)
    assert_passes(out)


@pytest.mark.parametrize("operator", FAMILIES)
def test_a_finished_family_passes_its_tests_as_an_extension(tmp_path: Path, operator: str) -> None:
    assert_passes(scaffolded(tmp_path, operator, "extension", "--from-kernel"))
