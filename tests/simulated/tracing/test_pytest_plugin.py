"""`pytest --mps-no-fallback` fails tests in which something falls back, and no others."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

TESTS = """
import pytest
import torch

def test_native():
    torch.ones(3, device="mps").add(1)

def test_falls_back():
    torch.ones(3, device="mps").mode()

@pytest.mark.mps_allow_fallback("aten::mode")
def test_allowed():
    torch.ones(3, device="mps").mode()

@pytest.mark.mps_allow_fallback("aten::heaviside")
def test_another_is_allowed():
    torch.ones(3, device="mps").mode()

@pytest.mark.mps_allow_fallback
def test_all_are_allowed():
    torch.ones(3, device="mps").mode()

@pytest.fixture
def middle():
    return torch.ones(3, device="mps").mode()

def test_a_fixture_falls_back(middle):
    pass

@pytest.fixture
def tidied():
    yield
    torch.ones(3, device="mps").mode()

def test_a_fixture_falls_back_after_it(tidied):
    pass
"""


def run(path: Path, tests: str) -> subprocess.CompletedProcess[str]:
    path.write_text(tests)
    # No `-p`: the entry point of an installed mpsmith brings the option, and asking for it twice is an error of pytest.
    command = [sys.executable, "-m", "pytest", "--mps-no-fallback", "-q", "-rA", "--strict-markers", str(path)]
    environment = os.environ | {"PYTEST_ADDOPTS": "", "MPSMITH_SIMULATE": "1"}
    environment.pop("PYTORCH_ENABLE_MPS_FALLBACK", None)
    return subprocess.run(command, capture_output=True, text=True, env=environment, cwd=path.parent, check=False)


def test_only_unmarked_fallbacks_fail(tmp_path: Path) -> None:
    path = tmp_path / "test_model.py"
    done = run(path, TESTS)
    results = {line.split("::")[1].split()[0]: line.split()[0] for line in done.stdout.splitlines() if ".py::" in line}
    assert results == {
        "test_native": "PASSED",
        "test_falls_back": "FAILED",
        "test_allowed": "PASSED",
        "test_another_is_allowed": "FAILED",
        "test_all_are_allowed": "PASSED",
        "test_a_fixture_falls_back": "ERROR",
        "test_a_fixture_falls_back_after_it": "ERROR",
    }, done.stdout
    line = next(number for number, text in enumerate(TESTS.splitlines(), 1) if "mode()" in text)
    assert f"  aten::mode at {path}:{line}" in done.stdout
    assert "test_falls_back - Failed: aten::mode fell" in done.stdout
    assert "aten::mode fell back to the CPU on mps in a fixture" in done.stdout


def test_a_mark_of_no_operator_is_refused(tmp_path: Path) -> None:
    tests = "import pytest\n@pytest.mark.mps_allow_fallback('aten::mod', 'mylib::op')\ndef test(): pass\n"
    done = run(tmp_path / "test_model.py", tests)
    assert (
        "test_model.py::test: mps_allow_fallback: mpsmith knows no operator, function or module 'aten::mod'"
        in done.stderr
    )
    assert done.returncode == pytest.ExitCode.USAGE_ERROR
